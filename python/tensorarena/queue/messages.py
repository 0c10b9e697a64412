# SPDX-License-Identifier: MIT
"""Objects and the frames that they are sent as: a pickle, then the large
buffers that it refers to."""

from __future__ import annotations

import copyreg
import pickle
import sys
from typing import Any

from .. import pickling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._arena import Writer

    Frames = Sequence[bytes | memoryview]

# Smallest buffer that is worth a frame of its own.
MIN_BYTES = 1 << 20


class _Sink:
    """Where a pickler writes to and leaves large buffers, all as it is."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.large: list[memoryview] = []
        self.write = self.pieces.append

    def keep_in(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer goes into the pickle."""
        raw = buffer.raw()
        if raw.nbytes < MIN_BYTES:
            return True
        self.large.append(raw)
        return False

    def clear(self) -> None:
        self.pieces.clear()
        self.large.clear()


class _Pickler(pickle.Pickler):
    """What an ArenaPickler is where there is no arena."""

    used = False


class Pickling:
    """Makes frames of objects, one by one, with an arena or without.

    What the arena takes is in slots from dump() on, until commit() publishes it
    or rollback() gives it up.
    """

    def __init__(self, arena: Writer | None = None) -> None:
        self._arena = arena
        self._sink = _Sink()
        self._reducers: tuple[int, bool, bool] | None = None
        self._pickler: Any = None

    def dump(self, obj: Any) -> Frames:
        reducers = (len(copyreg.dispatch_table), "numpy" in sys.modules,
                    "torch" in sys.modules)
        if reducers != self._reducers:
            self._pickler = self._make("torch" in sys.modules)
            self._reducers = reducers
        pickler = self._pickler
        if pickler.used:
            pickler.begin()
        try:
            # As it is in C: an ArenaPickler's own does what follows here, and
            # small messages are not to pay for large ones.
            pickle.Pickler.dump(pickler, obj)
            return [b"".join(self._sink.pieces), *self._sink.large]
        except BaseException:
            self.rollback()
            raise
        finally:
            pickler.clear_memo()
            self._sink.clear()

    def _make(self, with_tensors: bool) -> Any:
        """A pickler for all messages to come, as long as there are no other
        reducers."""
        table = copyreg.dispatch_table
        if with_tensors:
            from . import tensors

            table = {**table, **tensors.reducers()}
        if self._arena is None:
            plain = _Pickler(self._sink, pickle.HIGHEST_PROTOCOL,
                             buffer_callback=self._sink.keep_in)
            plain.dispatch_table = table
            return plain
        kind = pickling.ArenaPickler
        if with_tensors:
            from .. import torch

            kind = torch.ArenaPickler
        pickler = kind(self._sink, self._arena, buffer_callback=self._sink.keep_in,
                       dispatch_table=table)
        pickler.begin()
        return pickler

    @property
    def diverted(self) -> bool:
        """Whether the arena has taken something."""
        return self._pickler.used and bool(self._pickler.tickets)

    def commit(self) -> bool:
        """False: no reader is left, and the frames are of no use."""
        return not self._pickler.used or self._pickler.commit()

    def rollback(self) -> None:
        if self._pickler.used:
            self._pickler.rollback()


def load(frames: Frames) -> Any:
    return pickle.loads(frames[0], buffers=frames[1:])
