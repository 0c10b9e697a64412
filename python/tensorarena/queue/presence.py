# SPDX-License-Identifier: MIT
"""Who of a file's users is alive, as the kernel knows."""

from __future__ import annotations

import fcntl
import os
import struct
import weakref

_FLOCK = struct.Struct("hhqqi0q")

_presences: weakref.WeakSet[Presence] = weakref.WeakSet()


class Presence:
    """This process's lock on a byte of a file, its place.

    It goes with this process, whatever becomes of it, and with no other: the
    lock belongs to an open file of its own, which forked children close.  It
    needs no common namespace of process ids, and no other thread.

    BlockingIOError: somebody is there already.
    """

    def __init__(self, path: str, place: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        _presences.add(self)
        try:
            self._lock(fcntl.F_OFD_SETLK, place)
        except OSError:
            self.close()
            raise

    def _lock(self, command: int, place: int) -> int:
        """The kind of lock that is, or would be, in the way."""
        lock = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
        kind: int = _FLOCK.unpack(fcntl.fcntl(self._fd, command, lock))[0]
        return kind

    def of(self, place: int) -> bool:
        """Whether somebody has that other place."""
        return self._lock(fcntl.F_OFD_GETLK, place) != fcntl.F_UNLCK

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()


def _close_inherited() -> None:
    for presence in list(_presences):
        presence.close()


os.register_at_fork(after_in_child=_close_inherited)
