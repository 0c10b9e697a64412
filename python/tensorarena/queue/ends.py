# SPDX-License-Identifier: MIT
"""What a message queue is made of: its writer, its local and remote readers.

All of it is for one thread at a time, but for stop().
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any

import zmq

from .. import _arena
from .._core import WrongProcess
from .bus import Publisher, Subscriber
from .messages import Pickling, load
from .ring import (
    RingReader,
    RingWriter,
    ShutDown,
    check_cancel,
    deadline_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event

    from . import Handle
    from .messages import Frames

# What remote readers are told that is no message; a pickle is longer.
_READY, _END = b"R", b"E"


class _End:
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._context = zmq.Context()
        self._sockets: list[Publisher | Subscriber] = []
        self.stopped = False

    def check_process(self) -> None:
        if self._pid != os.getpid():
            raise WrongProcess(errno.EIO, "the queue is the parent process's")

    def check(self) -> None:
        """WrongProcess, ShutDown: there are to be no more calls."""
        self.check_process()
        if self.stopped:
            raise ShutDown("the message queue has been shut down")

    def stop(self) -> None:
        """Lets check() fail.  For any thread, and whoever is in a call."""
        self.check_process()
        self.stopped = True

    def close(self) -> None:
        """After stop(): sends what is left to be sent, for a second."""
        # At the end of the interpreter the context itself knows of none.
        while self._sockets:
            self._sockets.pop().close()
        self._context.term()

    def drop(self) -> None:
        """At the end of its life."""
        if self._pid == os.getpid() and not self._context.closed:
            self.stop()
            self.close()


class WriterEnd(_End):
    """Local readers get messages through the ring, what is too large for it
    through a socket beside it, remote ones all through another."""

    def __init__(self, local: int, remote: int, chunk_bytes: int, chunks: int,
                 ip: str, arena: _arena.Writer | None, copy: bool) -> None:
        super().__init__()
        self._n_remote = remote
        self._chunk_bytes = chunk_bytes
        self._pickling = Pickling(arena if local else None)
        self._whole = Pickling()
        self.ring: RingWriter | None = None
        self.local = self.remote = None
        if local:
            self.ring = RingWriter(local, chunk_bytes, chunks)
            self.local = Publisher(self._context, None, 0, copy)
            self._sockets.append(self.local)
        if remote:
            address = f"tcp://[{ip}]:*" if ":" in ip else f"tcp://{ip}:*"
            self.remote = Publisher(self._context, address, chunks, copy)
            self._sockets.append(self.remote)

    def wait_until_ready(self, deadline: float | None) -> None:
        self.check()
        if self.local is not None and self.ring is not None:
            self.ring.wait_for_readers(deadline)
            # Some may have gone again.
            self.local.wait_for(self.ring.present, deadline, self.check)
            self.ring.welcome()
        if self.remote is not None:
            self.remote.wait_for(lambda: self._n_remote, deadline, self.check)
            self.remote.send([_READY], deadline, self.check)

    def send(self, deadline: float | None, obj: Any) -> None:
        """What fails here leaves nothing behind, but that remote readers may
        have got what local ones have not."""
        self.check()
        if self.ring is not None:
            self.ring.reserve(deadline)
        self._check_readers()
        frames = self._pickling.dump(obj)
        try:
            if self.remote is not None:
                whole = frames
                if self._pickling.diverted:
                    whole = self._whole.dump(obj)
                self.remote.send(whole, deadline, self.check)
            # Last what cannot be taken back, or does not fail.
            if self.ring is not None:
                if not self._pickling.commit():
                    frames = self._whole.dump(obj)
                self._send_locally(frames)
        except BaseException:
            self._pickling.rollback()
            if self.remote is not None and self.remote.torn:
                self.stop()
            raise

    def _send_locally(self, frames: Frames) -> None:
        assert self.ring is not None and self.local is not None
        try:
            if len(frames) == 1 and len(frames[0]) <= self._chunk_bytes:
                self.ring.put(frames[0])
            else:
                self.local.send(frames)
                self.ring.put(b"")
        except BaseException:
            # Whatever comes next would be taken for the rest of this.
            self.stop()
            raise

    def _check_readers(self) -> None:
        if self.ring is not None and self.ring.readers:
            return
        if self.remote is not None and self.remote.listeners():
            return
        raise BrokenPipeError(errno.EPIPE, "no reader of the queue is left")

    def stop(self) -> None:
        super().stop()
        if self.ring is not None:
            self.ring.stop()

    def close(self) -> None:
        if self.remote is not None and not self._context.closed:
            with contextlib.suppress(TimeoutError):
                self.remote.send([_END], deadline_of(0))
        super().close()
        if self.ring is not None:
            self.ring.leave()


class LocalReaderEnd(_End):
    def __init__(self, handle: Handle, reader: int) -> None:
        super().__init__()
        assert handle.buffer_handle and handle.local_subscribe_addr
        self._ring = RingReader(handle.buffer_handle, reader)
        self._bus = Subscriber(self._context, handle.local_subscribe_addr)
        self._sockets.append(self._bus)
        self._arena = handle.arena_handle
        if self._arena is not None:
            _arena.attach(self._arena)

    def wait_until_ready(self, deadline: float | None) -> None:
        self.check()
        self._ring.wait_for_writer(deadline)

    def receive(self, deadline: float | None, cancel: Event | None) -> Any:
        """What fails before the message has come as a whole leaves it where it
        is."""

        def check() -> None:
            check_cancel(cancel)
            self._ring.check_writer()

        self.check()
        frame = self._ring.get(deadline, cancel)
        if not len(frame):
            self._bus.wait(deadline, check)
            return load(self._take())
        try:
            return load([frame])
        finally:
            self._done()

    def _take(self) -> Frames:
        try:
            frames = self._bus.take()
            self._ring.done()
            return frames
        except BaseException:
            # Of what is left here nobody knows to which message it belongs.
            self.stop()
            raise

    def _done(self) -> None:
        try:
            self._ring.done()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        super().stop()
        self._ring.stop()

    def close(self) -> None:
        super().close()
        if self._arena is not None:
            _arena.detach(self._arena)
        self._ring.leave()


class RemoteReaderEnd(_End):
    def __init__(self, handle: Handle) -> None:
        super().__init__()
        assert handle.remote_subscribe_addr
        self._bus = Subscriber(self._context, handle.remote_subscribe_addr,
                               handle.max_chunks)
        self._sockets.append(self._bus)

    def wait_until_ready(self, deadline: float | None) -> None:
        self.check()
        self._bus.wait(deadline, self.check)
        self._take()

    def _take(self) -> Frames:
        try:
            frames = self._bus.take()
        except BaseException:
            # The next would begin with the rest of this one.
            self.stop()
            raise
        # After frames of a message that broke off it is taken for the last of
        # them; a buffer that is a frame is longer.
        if frames[-1] == _END:
            self.stop()
        self.check()
        return frames

    def receive(self, deadline: float | None, cancel: Event | None) -> Any:
        def check() -> None:
            check_cancel(cancel)
            self.check()

        self.check()
        while True:
            self._bus.wait(deadline, check)
            frames = self._take()
            if frames[0] != _READY:
                return load(frames)
