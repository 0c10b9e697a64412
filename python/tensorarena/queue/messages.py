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
    """A file that keeps what is written, as it is."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.write = self.pieces.append


class Pickling:
    """Makes frames of objects, one by one, with an arena or without.

    What the arena takes is in slots from dump() on, until commit() publishes it
    or rollback() gives it up.
    """

    def __init__(self, arena: Writer | None = None) -> None:
        self._arena = arena
        self._sink = _Sink()
        self._large: list[memoryview] = []

    def dump(self, obj: Any) -> Frames:
        self._pickler = self._make()
        try:
            self._pickler.dump(obj)
            return [b"".join(self._sink.pieces), *self._large]
        finally:
            self._sink.pieces.clear()
            self._large.clear()

    def _make(self) -> Any:
        table = None
        if "torch" in sys.modules:
            from . import tensors

            table = {**copyreg.dispatch_table, **tensors.reducers()}
        if self._arena is None:
            pickler = pickle.Pickler(self._sink, pickle.HIGHEST_PROTOCOL,
                                     buffer_callback=self._keep_in)
            if table is not None:
                pickler.dispatch_table = table
            return pickler
        if table is None:
            return pickling.ArenaPickler(self._sink, self._arena,
                                         buffer_callback=self._keep_in)
        from .. import torch

        return torch.ArenaPickler(self._sink, self._arena,
                                  buffer_callback=self._keep_in,
                                  dispatch_table=table)

    def _keep_in(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer goes into the pickle."""
        raw = buffer.raw()
        if raw.nbytes < MIN_BYTES:
            return True
        self._large.append(raw)
        return False

    @property
    def diverted(self) -> bool:
        """Whether the arena has taken something."""
        return self._arena is not None and bool(self._pickler.tickets)

    def commit(self) -> bool:
        """False: no reader is left, and the frames are of no use."""
        return self._arena is None or self._pickler.commit()

    def rollback(self) -> None:
        if self._arena is not None:
            self._pickler.rollback()


def load(frames: Frames) -> Any:
    return pickle.loads(frames[0], buffers=frames[1:])
