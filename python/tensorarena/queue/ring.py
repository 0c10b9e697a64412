# SPDX-License-Identifier: MIT
"""Small messages from one writer to some readers, in memory that they share.

    cookie | two bells | writer's words | words of reader 0 | 1 | ... | chunks

The writer counts the messages that it has put, each reader those that it is
done with; message n lies in chunk n % chunks.  A count is stored by one process
only, a release, when the bytes that it stands for have been written, or read;
the others load it, an acquire, before they touch those bytes.  Nothing else
orders them, and nothing else has to: see docs/memory-ordering.md.

A bell is rung after a count or a state has changed.  Who finds nothing to do
sleeps for as long as the bell is as it was before he looked, and now and then
looks whether the others are alive.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import secrets
import struct
import time
from collections import namedtuple

from .._core import Words, WriterGone, WrongProcess
from .presence import Presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event

# How many readers there are, how large a message may be, how many some reader
# may not have got yet; where the memory is, and what it begins with, so that no
# other is taken for it.
RingHandle = namedtuple("RingHandle",
                        ("readers", "chunk_bytes", "chunks", "path", "cookie"))

_COOKIE_BYTES = 16
_COUNT_MASK = 0xFFFFFFFF
_LENGTH = struct.Struct("<Q")

# Words, by index.  What different processes store has a cache line each: the
# bells for news and for room, then count and state of everybody by place.
_LINE = 64 // 4
_NEWS, _ROOM, _FIRST = _LINE, 2 * _LINE, 3 * _LINE
_WRITER = 0

# What becomes of everybody, in this order.
_EXPECTED, _HERE, _GONE = range(3)

# How long to sleep before looking whether the others are alive.
LOOK_S = 0.1


class ShutDown(RuntimeError):
    """The queue has been shut down, by its writer or in this process."""


def deadline_of(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def nap(deadline: float | None) -> float:
    """How long to sleep at most.  TimeoutError: not at all."""
    if deadline is None:
        return LOOK_S
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("waited for the message queue in vain")
    return min(left, LOOK_S)


def wait_for(deadline: float | None) -> float:
    """The same for a lock."""
    return -1 if deadline is None else max(0, deadline - time.monotonic())


def check_cancel(cancel: Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise ShutDown("the wait for a message was cancelled")


class _End:
    """What writer and readers have in common.

    place: the writer's is 0, the first reader's 1

    FileNotFoundError, ValueError: there is no such memory.  BlockingIOError:
    somebody is in that place.
    """

    def __init__(self, handle: RingHandle, place: int) -> None:
        self._handle = handle
        self._place = place
        self._pid = os.getpid()
        self._count = 0
        first, self._stride, nbytes = _layout(handle)
        fd = os.open(handle.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            memory = mmap.mmap(fd, nbytes)
        finally:
            os.close(fd)
        if memory[:_COOKIE_BYTES] != handle.cookie:
            raise ValueError("that is other memory")
        self._words = Words(memory)
        self._chunks = memoryview(memory)[first:]
        self._presence = Presence(handle.path, place)

    def check(self) -> None:
        """WrongProcess, ShutDown: there are to be no more calls."""
        if self._pid != os.getpid():
            raise WrongProcess(errno.EIO, "the queue is the parent process's")
        if self._state_of(self._place) == _GONE:
            raise _shut_down()

    def stop(self) -> None:
        """Lets check() fail, and wakes everybody."""
        self._say(_GONE)
        self._words.ring(_ROOM)
        self._words.ring(_NEWS)

    def leave(self) -> None:
        """After stop(): nobody takes this end for alive any more."""
        self._presence.close()

    def _state_of(self, place: int) -> int:
        return self._words.load(_state_word(place))

    def _say(self, state: int) -> None:
        # Another thread may be saying that this end is gone.
        self._words.grow(_state_word(self._place), state)

    def _counted(self, bell: int) -> None:
        """One more message put, or done with."""
        self._count += 1
        self._words.store(_count_word(self._place), self._count & _COUNT_MASK)
        self._words.ring(bell)

    def _at(self) -> tuple[int, int]:
        """Where the next message's length is, and where its bytes."""
        start = self._count % self._handle.chunks * self._stride
        return start, start + _LENGTH.size


class RingWriter(_End):
    """Where messages are put, by one thread at a time."""

    def __init__(self, readers: int, chunk_bytes: int, chunks: int) -> None:
        if min(readers, chunk_bytes, chunks) < 1:
            raise ValueError("a ring needs readers and room for messages")
        self._fd = os.memfd_create("tensorarena-queue",
                                   os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.handle = RingHandle(
            readers, chunk_bytes, chunks, f"/proc/{os.getpid()}/fd/{self._fd}",
            secrets.token_bytes(_COOKIE_BYTES))
        os.pwrite(self._fd, self.handle.cookie, 0)
        os.ftruncate(self._fd, _layout(self.handle)[2])
        # Who could make it smaller could kill those who look.
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        super().__init__(self.handle, _WRITER)
        self._readers = list(range(1, 1 + readers))
        self._free_until = chunks

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)

    def wait_for_readers(self, deadline: float | None) -> None:
        """Until all have come."""
        while True:
            seen = self._words.load(_ROOM)
            self.check()
            if all(map(self._state_of, self._readers)):
                break
            self._words.wait(_ROOM, seen, nap(deadline))

    def present(self) -> int:
        """How many readers there are now."""
        return sum(map(self._is_there, self._readers))

    def welcome(self) -> None:
        """Lets readers know that all have come."""
        self._say(_HERE)
        self._words.ring(_NEWS)

    def reserve(self, deadline: float | None) -> None:
        """Waits until there is room: put() does not."""
        while self._count >= self._free_until:
            seen = self._words.load(_ROOM)
            self.check()
            behind = max(map(self._behind, self._readers), default=0)
            self._free_until = self._count + self._handle.chunks - behind
            if self._count < self._free_until:
                break
            left = list(filter(self._is_there, self._readers))
            if left == self._readers:
                self._words.wait(_ROOM, seen, nap(deadline))
            self._readers = left

    @property
    def readers(self) -> int:
        """How many there are, as far as reserve() has found out."""
        return len(self._readers)

    def _behind(self, reader: int) -> int:
        """How many messages it is not done with."""
        done = self._words.load(_count_word(reader))
        return (self._count - done) & _COUNT_MASK

    def _is_there(self, reader: int) -> bool:
        state = self._state_of(reader)
        return state == _EXPECTED or (state == _HERE
                                      and self._presence.of(reader))

    def put(self, data: bytes | memoryview) -> None:
        """Hands out a message of chunk_bytes at most."""
        start, after = self._at()
        _LENGTH.pack_into(self._chunks, start, len(data))
        self._chunks[after:after + len(data)] = data
        self._counted(_NEWS)


class RingReader(_End):
    """Where a reader gets them, in one thread at a time."""

    def __init__(self, handle: RingHandle, reader: int) -> None:
        try:
            super().__init__(handle, 1 + reader)
        except BlockingIOError:
            raise ValueError("there is such a reader already") from None
        except (FileNotFoundError, ValueError):
            raise _writer_gone() from None
        if self._state_of(self._place) != _EXPECTED:
            raise ValueError("there has been such a reader before")
        self._say(_HERE)
        self._words.ring(_ROOM)

    def wait_for_writer(self, deadline: float | None) -> None:
        """Until it knows that all readers have come."""
        while True:
            seen = self._words.load(_NEWS)
            self.check()
            if self._state_of(_WRITER) == _HERE:
                return
            over = self._why_over()
            if over is not None:
                # It may have been here, have sent its messages, and gone.
                if self._has_next():
                    return
                raise over
            self._words.wait(_NEWS, seen, nap(deadline))

    def get(self, deadline: float | None, cancel: Event | None = None
            ) -> memoryview:
        """The next message, where it is until done() is called."""
        while True:
            seen = self._words.load(_NEWS)
            if self._has_next():
                break
            over = self._why_over()
            # It may have put something before it went.
            if self._has_next():
                break
            if over is not None:
                raise over
            check_cancel(cancel)
            self._words.wait(_NEWS, seen, nap(deadline))
        start, after = self._at()
        nbytes, = _LENGTH.unpack_from(self._chunks, start)
        return self._chunks[after:after + nbytes]

    def done(self) -> None:
        self._counted(_ROOM)

    def _has_next(self) -> bool:
        put = self._words.load(_count_word(_WRITER))
        return put != self._count & _COUNT_MASK

    def _why_over(self) -> Exception | None:
        """Why nothing more will be put, or None."""
        if self._state_of(_WRITER) == _GONE:
            return _shut_down()
        try:
            self.check_writer()
        except (ShutDown, WriterGone) as error:
            return error
        return None

    def check_writer(self) -> None:
        """The same as check(); WriterGone: it is not alive."""
        self.check()
        if not self._presence.of(_WRITER):
            raise _writer_gone()


def _layout(handle: RingHandle) -> tuple[int, int, int]:
    """Where the chunks begin, from one to the next, and where all ends."""
    page = mmap.PAGESIZE
    first = 4 * _count_word(1 + handle.readers)
    first += -first % page
    stride = _LENGTH.size + handle.chunk_bytes
    stride += -stride % page
    return first, stride, first + handle.chunks * stride


def _count_word(place: int) -> int:
    return _FIRST + place * _LINE


def _state_word(place: int) -> int:
    return _count_word(place) + 1


def _shut_down() -> ShutDown:
    return ShutDown("the message queue has been shut down")


def _writer_gone() -> WriterGone:
    return WriterGone(errno.EPIPE, "the queue's writer is gone")
