# SPDX-License-Identifier: MIT
"""Writer and Reader, and which arenas this process has attached to."""

from __future__ import annotations

import os
import sys
import threading
import weakref

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from _typeshed import ReadableBuffer

# Readers of this process by handle: all of them, weakly, and those that
# attach() has made itself, for which nobody else has a reference.  Who attaches
# holds a lock for that handle, so that two threads cannot take two seats; the
# other one is never held while anybody is waited for.
_readers: weakref.WeakValueDictionary[str, Reader] = (
    weakref.WeakValueDictionary())
_kept: dict[str, Reader] = {}
_attaching: weakref.WeakValueDictionary[str, threading.RLock] = (
    weakref.WeakValueDictionary())
_lock = threading.RLock()


class Writer(_core.Writer):
    """Creates an arena.  Costs no slot memory until it is used.

    slots: how many tensors may be in flight, 1 to 256
    slot_bytes: largest tensor
    seats: readers expected, 0 to 64; publications wait for them from the start
    engine: "auto", "device" (the kernel module) or "embedded"
    node: NUMA node of the slots, -1: where this runs
    copy_threads: that copy a large tensor, this one included, at most 64; 0: as
        many as processors and cgroup allow
    writable: readers may write to the tensors
    contiguous, fallback_small, node_strict: device engine, see tensorarena.h
    memory_check: fail when all slots would not fit the memory there is now
    any_uid: embedded engine: readers of any uid that know the handle
    socket_path: embedded engine: listen here, not on an abstract socket

    put() and loan() never block.  They decline with None; last_decline says
    why: "no_slot", "oversize", "no_memory", "limit" or "no_reader".
    """

    def __init__(self, slots: int = 8, slot_bytes: int = 256 << 20,
                 seats: int = 0, **options: Any) -> None:
        super().__init__(slots, slot_bytes, seats, **options)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """An uninitialised tensor or array that lives in a slot on loan.

        shape: extents
        dtype: a torch.dtype gives a tensor, the name of an element type (see
            dtype_bits()) gives a Loan, and all else is taken for a NumPy dtype
            and gives an array

        Pickled by an ArenaPickler, or given to commit(), it is published
        without a copy.  None: declined, see last_decline.
        """
        if isinstance(dtype, str):
            return self.loan(nbytes_of(dtype, shape), dtype, shape)
        if type(dtype).__module__ == "torch":
            from . import torch

            return torch.empty(self, shape, dtype)
        from . import _numpy

        return _numpy.empty(self, shape, dtype)

    def commit(self, thing: Any, *, tag: ReadableBuffer | None = None,
               readers: Sequence[int] | None = None) -> _core.Ticket | None:
        """Publishes what empty() or loan() gave, without a copy.

        The bytes are the readers' then: do not write to it any more.  It stays
        valid memory, and its slot is not used again, for as long as it lives.

        Returns a Ticket, or None when that is declined.  ValueError: it is not
        on loan from this writer as a whole.
        """
        if isinstance(thing, _core.Loan):
            return thing.commit(tag=tag, readers=readers)
        address, nbytes, dtype, shape = _describe(thing)
        loan = self.loan_at(address)
        if loan is None or (loan.address, loan.nbytes) != (address, nbytes):
            raise ValueError("not on loan from this writer as a whole")
        return loan.commit(None, dtype, shape, tag=tag, readers=readers)


class Reader(_core.Reader):
    """Attaches to an arena.  This process's death frees all that it holds.

    handle: the writer's .handle
    fd: a descriptor from Writer.connect(), which is consumed
    """

    def __init__(self, handle: str, *, fd: int = -1) -> None:
        super().__init__(handle, fd=fd)
        with _lock:
            known = _readers.get(self.handle)
            if known is None or known.closed:
                _readers[self.handle] = self

    def view(self, ticket: _core.Ticket, *,
             stream: int | Literal["current"] | None = "current"
             ) -> _core.View:
        """The publication that a ticket names.

        stream: the CUDA stream (cudaStream_t) that will read it, of this
            thread's current device; the slot waits for what that has been sent
            when the last object that shares the memory goes.  "current": the
            one that PyTorch has current, if it uses CUDA.  None: do not wait.
        """
        if stream == "current":
            stream = current_stream()
        return super().view(ticket, stream=stream)

    def next(self, timeout: float | None = None, *,
             stream: int | Literal["current"] | None = "current"
             ) -> _core.View | None:
        """The oldest publication addressed here and not seen yet.

        timeout: in seconds; None waits for ever
        stream: see view()

        None: nothing arrived in time.
        """
        if stream == "current":
            stream = current_stream()
        return super().next(timeout, stream=stream)


def current_stream() -> int | None:
    """The CUDA stream that PyTorch has current in this thread, or None.

    Imports nothing and does not initialise CUDA.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    stream: int = torch.cuda.current_stream().cuda_stream
    return stream


def nbytes_of(dtype: str, shape: Sequence[int]) -> int:
    """Bytes of a tensor."""
    elements = 1
    for extent in shape:
        elements *= extent
    return -(-elements * _core.dtype_bits(dtype) // 8)


def _describe(thing: Any) -> tuple[int, int, str, tuple[int, ...]]:
    """Address, bytes, element type and shape of a tensor or array."""
    if hasattr(thing, "data_ptr"):
        from . import torch

        return torch.describe(thing)
    from . import _numpy

    return _numpy.describe(thing)


def _known(handle: str) -> Reader | None:
    """The Reader there is for a handle; under the lock."""
    reader = _readers.get(handle)
    return None if reader is None or reader.closed else reader


def attach(handle: str) -> Reader:
    """The Reader of this process for a handle, attaching if there is none.

    What this attaches stays attached until the writer is gone or detach() is
    called: a reader that leaves between messages would miss what is published
    meanwhile.
    """
    with _lock:
        reader = _known(handle)
        if reader is not None:
            return reader
        mine = _attaching.get(handle)
        if mine is None:
            _attaching[handle] = mine = threading.RLock()
    with mine:
        with _lock:
            reader = _known(handle)
            if reader is not None:
                return reader
            for old in [h for h, r in _kept.items()
                        if r.closed or r.writer_gone()]:
                del _kept[old]
        reader = Reader(handle)
        with _lock:
            _kept[handle] = reader
        return reader


def detach(handle: str) -> None:
    """Undoes attach(); what shares memory of the arena keeps it."""
    with _lock:
        _kept.pop(handle, None)


def _forget() -> None:
    """In a forked child, where they are dead."""
    global _lock
    _lock = threading.RLock()
    _attaching.clear()
    _readers.clear()
    _kept.clear()


os.register_at_fork(after_in_child=_forget)
