# SPDX-License-Identifier: MIT
"""Tensors in arenas.

What a reader gets is an ordinary tensor whose memory is the slot's.  The slot
is released when the last tensor, slice, Parameter or array that shares that
memory is gone, in whatever thread, and when the CUDA stream that was current
where the tensor was made has done what it had been sent until then.  Other
streams that read it have to be named: see record_stream().

Unless the arena is writable, so is no tensor: PyTorch cannot express that, and
an operation in place (add_(), out=...) kills the process with SIGSEGV.
"""

from __future__ import annotations

import torch

from . import _arena, _core, pickling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from _typeshed import ReadableBuffer

# Smallest tensor that is worth a slot.
MIN_BYTES = 1 << 20

_NAMES: dict[torch.dtype, str] = {
    getattr(torch, theirs): ours
    for theirs, ours in (
        ("bool", "bool"),
        ("uint8", "u8"), ("uint16", "u16"), ("uint32", "u32"),
        ("uint64", "u64"),
        ("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"),
        ("float16", "f16"), ("bfloat16", "bf16"), ("float32", "f32"),
        ("float64", "f64"),
        ("complex32", "c32"), ("complex64", "c64"), ("complex128", "c128"),
        ("float8_e4m3fn", "f8_e4m3fn"), ("float8_e4m3fnuz", "f8_e4m3fnuz"),
        ("float8_e5m2", "f8_e5m2"), ("float8_e5m2fnuz", "f8_e5m2fnuz"),
        ("float8_e8m0fnu", "f8_e8m0fnu"),
        ("float4_e2m1fn_x2", "f4_e2m1fnx2"),
    )
    if hasattr(torch, theirs)
}
_DTYPES = {ours: theirs for theirs, ours in _NAMES.items()}


def as_tensor(view: _core.View | _core.Loan) -> torch.Tensor:
    """A tensor that shares the memory of a View or Loan."""
    try:
        dtype = _DTYPES[view.dtype]
    except KeyError:
        raise TypeError(
            f"this version of PyTorch has no type for {view.dtype}") from None
    flat = torch.utils.dlpack.from_dlpack(view.dlpack_bytes())
    return flat.view(dtype).view(view.shape)


def view(reader: _arena.Reader, ticket: _core.Ticket) -> torch.Tensor:
    """The tensor that a ticket names."""
    return as_tensor(reader.view(ticket))


def put(writer: _arena.Writer, tensor: torch.Tensor, *,
        tag: ReadableBuffer = b"", readers: Sequence[int] | None = None
        ) -> _core.Ticket | None:
    """Copies a tensor into a slot and publishes it.

    Returns a Ticket, or None when that is declined; writer.last_decline says
    why: see why_not().
    """
    reason = why_not(tensor)
    if reason:
        writer.decline(reason)
        return None
    return writer.put_address(*describe(tensor), tag=tag, readers=readers)


def empty(writer: _arena.Writer, shape: Sequence[int], dtype: torch.dtype
          ) -> torch.Tensor | None:
    """See Writer.empty()."""
    try:
        name = _NAMES[dtype]
    except KeyError:
        raise ValueError(f"there is no element type for {dtype}") from None
    loan = writer.loan(_arena.nbytes_of(name, shape), name, shape)
    return None if loan is None else as_tensor(loan)


def describe(tensor: torch.Tensor
             ) -> tuple[int, int, str, tuple[int, ...]]:
    """Address, bytes, element type and shape of a contiguous CPU tensor."""
    return (tensor.data_ptr(), tensor.numel() * tensor.element_size(),
            _NAMES[tensor.dtype], tuple(tensor.shape))


def record_stream(tensor: torch.Tensor,
                  stream: torch.cuda.Stream | None = None) -> bool:
    """The slot of a tensor is to wait also for another CUDA stream.

    For each stream that reads the tensor and was not current where it was made,
    before the tensor goes.

    stream: a torch.cuda.Stream; the current one by default

    Returns whether the tensor is in an arena.
    """
    if stream is None:
        stream = torch.cuda.current_stream()
    shared = _core.view_at(tensor.data_ptr())
    if shared is None:
        return False
    with torch.cuda.device(stream.device):
        shared.record_stream(stream.cuda_stream)
    return True


def why_not(tensor: torch.Tensor, min_bytes: int = 0) -> str | None:
    """Why a tensor cannot go through an arena: a word, or None when it can.

    "subclass", "layout", "device", "quantized", "dtype", "requires_grad",
    "conj", "neg", "names", "hooks", "attributes", "dimensions",
    "not_contiguous", "empty" or "small"
    """
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return "subclass"
    if tensor.layout is not torch.strided or tensor.is_nested:
        return "layout"
    if tensor.device.type != "cpu":
        return "device"
    if tensor.is_quantized:
        return "quantized"
    if tensor.dtype not in _NAMES:
        return "dtype"
    nbytes = tensor.numel() * tensor.element_size()
    if not nbytes:
        return "empty"
    if nbytes < min_bytes:
        return "small"
    return _why_not_as_it_is(tensor)


def _why_not_as_it_is(tensor: torch.Tensor) -> str | None:
    """What a tensor may have that its bytes do not tell."""
    if tensor.requires_grad:
        return "requires_grad"
    if tensor.is_conj():
        return "conj"
    if tensor.is_neg():
        return "neg"
    if tensor.has_names():
        return "names"
    if tensor._backward_hooks:
        return "hooks"
    if tensor.__dict__:
        return "attributes"
    if tensor.dim() > 8:
        return "dimensions"
    if not tensor.is_contiguous():
        return "not_contiguous"
    return None


class ArenaPickler(pickling.ArenaPickler):
    """An ArenaPickler that diverts large tensors and Parameters.

    min_bytes: smallest tensor that is worth a slot

    What why_not() has a word for, or the writer declines, is pickled as if there
    were no arena: by the dispatch_table, if it has the type, which may send it
    out of band as a pickle.PickleBuffer.  writer.declines counts by reason.
    """

    def __init__(self, file: pickling.Writable, writer: _arena.Writer,
                 protocol: int | None = None, *, min_bytes: int = MIN_BYTES,
                 **options: Any) -> None:
        super().__init__(file, writer, protocol, **options)
        self.min_bytes = min_bytes
        self._parts: dict[int, torch.Tensor] = {}

    def make_table(self) -> dict[type, Callable[[Any], Any]]:
        table = super().make_table()
        for kind in torch.Tensor, torch.nn.Parameter:
            table[kind] = _unless_small(table[kind], self.min_bytes,
                                        self.writer, self.plain_reducer(kind))
        return table

    def reducers(self) -> dict[type, Any]:
        reducers = super().reducers()
        reducers[torch.Tensor] = self._reduce_tensor
        reducers[torch.nn.Parameter] = self._reduce_parameter
        return reducers

    def dump(self, obj: Any) -> None:
        try:
            super().dump(obj)
        finally:
            self._parts.clear()

    def begin(self) -> None:
        super().begin()
        self._parts.clear()

    def _reduce_tensor(self, tensor: torch.Tensor) -> Any:
        if self._parts and id(tensor) in self._parts:
            return self.plain(tensor)
        reduced = self._divert(tensor, as_tensor)
        if reduced is None:
            reduced = self.plain(tensor)
            if tensor.layout is not torch.strided:
                self._spare(reduced)
        return reduced

    def _reduce_parameter(self, parameter: torch.nn.Parameter) -> Any:
        reduced = self._divert(parameter, _as_parameter)
        if reduced is None:
            reduced = self.plain(parameter)
            self._spare(reduced)
        return reduced

    def _divert(self, tensor: torch.Tensor,
                rebuild: Callable[[_core.View], Any]) -> Any:
        """What stands for a tensor that will be in a slot, or None."""
        reason = why_not(tensor, self.min_bytes)
        if reason:
            self.writer.decline(reason)
            return None
        address, nbytes, dtype, shape = describe(tensor)
        loan = self.loan_of(address, nbytes)
        if loan is not None:
            return self.draft(rebuild, loan, dtype, shape)
        loan = self.writer.loan(nbytes, dtype, shape)
        if loan is None:
            return None
        loan.write_address(address, nbytes)
        return self.draft(rebuild, loan)

    def _spare(self, part: Any) -> None:
        """What is made of tensors, and declined, is so with its parts: a
        Parameter that is being trained must not have its data in a slot."""
        if isinstance(part, tuple):
            for item in part:
                self._spare(item)
        elif type(part) is torch.Tensor:
            self.used = True
            self._parts[id(part)] = part


def _unless_small(reducer: Callable[[Any], Any], min_bytes: int,
                  writer: _arena.Writer, plain: Callable[[Any], Any]
                  ) -> Callable[[Any], Any]:
    """A reducer that has a short way for what there may be much of."""
    decline = writer.decline
    strided = torch.strided

    def reduce(tensor: torch.Tensor) -> Any:
        if (0 < tensor.numel() * tensor.element_size() < min_bytes
                and tensor.layout is strided):
            try:
                decline("small")
            except _core.Error:
                # The writer is closed; the reducer says so.
                return reducer(tensor)
            return plain(tensor)
        return reducer(tensor)

    return reduce


def _as_parameter(view: _core.View) -> torch.nn.Parameter:
    return torch.nn.Parameter(as_tensor(view), requires_grad=False)
