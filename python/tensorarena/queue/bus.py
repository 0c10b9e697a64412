# SPDX-License-Identifier: MIT
"""What is too large for the ring, and all for remote readers: a ZeroMQ socket
that sends everything to everybody who listens.

A message is a list of frames.  None is dropped: a listener that does not keep
up is waited for, and one whose connection is lost is told.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from typing import Any

import zmq

from .._core import WriterGone
from .ring import nap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .messages import Frames

    Check = Callable[[], object]

# How long an end that is closed goes on sending what it has been given.
_LINGER_MS = 1000
# A connection over a network without a sign of life for so long is lost.
_HEARTBEAT_MS = 10_000


def _make(context: Any, kind: int, address: str, room: int) -> Any:
    socket = context.socket(kind)
    socket.setsockopt(zmq.SNDHWM, room)
    socket.setsockopt(zmq.RCVHWM, room)
    socket.setsockopt(zmq.LINGER, _LINGER_MS)
    if address.startswith("tcp:"):
        socket.setsockopt(zmq.IPV6, int("[" in address))
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS // 2)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_MS)
    return socket


def _nap_ms(deadline: float | None) -> int:
    return int(nap(deadline) * 1000) or 1


_SHARED_MEMORY = "/dev/shm"


def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of nobody else's.  NFS removes what is in use later."""
    try:
        return tempfile.TemporaryDirectory(prefix="tensorarena-",
                                           ignore_cleanup_errors=True)
    except OSError:
        # In containers everything else may be read-only.
        return tempfile.TemporaryDirectory(prefix="tensorarena-",
                                           dir=_SHARED_MEMORY,
                                           ignore_cleanup_errors=True)


class _Door:
    """Where a socket listens that is for local readers: a file that has no name
    any more.

    They come to it as to the ring, by a descriptor of this process, through
    /proc; so the kernel lets in who may look into this process, root and others
    of its user.  A name could be left behind, or be found by somebody else.
    """

    def __init__(self, socket: Any) -> None:
        with _folder() as folder:
            # A socket's name is short; the folder's need not be.
            fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # Some versions remove the file when they close, wherever the
                # descriptor leads to then.
                path = f"/proc/self/fd/{fd}/{secrets.token_hex(8)}"
                socket.bind(f"ipc://{path}")
                self._fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            finally:
                os.close(fd)
        self.address = f"ipc:///proc/{os.getpid()}/fd/{self._fd}"

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)


class Publisher:
    """The writer's end.

    address: where to listen, as ZeroMQ has it; None: for this user's processes,
        and root's, on this node
    room: most messages that wait here, and as many with each listener; 0: no
        limit
    copy: False: frames are sent from where they are, by another thread, and
        have to stay as they are until everybody has them
    """

    def __init__(self, context: Any, address: str | None, room: int = 0,
                 copy: bool = True) -> None:
        self._socket = _make(context, zmq.XPUB, address or "", room)
        # Each that comes and goes is told of.
        self._socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self._socket.setsockopt(zmq.XPUB_NODROP, 1)
        self.address: str
        if address is None:
            self._door = _Door(self._socket)
            self.address = self._door.address
        else:
            self._socket.bind(address)
            self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._copy = copy
        self._listeners = 0
        # Some of a message may have been sent, and the rest not.
        self.torn = False

    def listeners(self, wait_ms: int = 0) -> int:
        """How many there are."""
        while self._socket.poll(wait_ms):
            self._listeners += 1 if self._socket.recv() == b"\1" else -1
            wait_ms = 0
        return self._listeners

    def wait_for(self, listeners: Callable[[], int], deadline: float | None,
                 check: Check) -> None:
        while self.listeners(_nap_ms(deadline)) < listeners():
            check()

    def send(self, frames: Frames,
             deadline: float | None = None, check: Check = bool) -> None:
        """TimeoutError, or what check() raises: nothing has been sent."""
        self._socket.setsockopt(zmq.SNDTIMEO, 0)
        while True:
            self.torn = True
            try:
                # The first frame is taken, or none.
                self._socket.send_multipart(frames, copy=self._copy)
                self.torn = False
                return
            except zmq.Again:
                self.torn = False
            check()
            self._socket.setsockopt(zmq.SNDTIMEO, _nap_ms(deadline))

    def close(self) -> None:
        self._socket.close()


class Subscriber:
    """A reader's end."""

    def __init__(self, context: Any, address: str, room: int = 0) -> None:
        self._socket = _make(context, zmq.SUB, address, room)
        # What was sent while a connection is made anew is lost.
        self._lost = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._lost, zmq.POLLIN)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.connect(address)

    def wait(self, deadline: float | None, check: Check) -> None:
        """For take() to have something.  WriterGone: the connection is lost."""
        ready = dict(self._poller.poll(0) or
                     self._poller.poll(_nap_ms(deadline)))
        while True:
            if self._socket in ready:
                return
            if ready:
                raise WriterGone(errno.EPIPE,
                                 "the connection to the writer is lost")
            # Not sooner: what a writer sent before it went may be on the way.
            check()
            ready = dict(self._poller.poll(_nap_ms(deadline)))

    def take(self) -> list[memoryview]:
        """The next message, after wait().  When this fails some of it may be
        gone."""
        return [frame.buffer for frame in
                self._socket.recv_multipart(copy=False)]

    def close(self) -> None:
        self._lost.close()
        self._socket.close()
