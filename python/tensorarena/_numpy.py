# SPDX-License-Identifier: MIT
"""Arrays on loan.  Imported only where NumPy is used."""

from __future__ import annotations

import numpy

from ._arena import nbytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._arena import Writer
    from ._core import View


def _name(dtype: Any) -> str:
    """The library's name of a dtype; ValueError: it has none."""
    if dtype.kind == "b":
        return "bool"
    if dtype.kind not in "iufc" or not dtype.isnative or dtype.char in "gG":
        raise ValueError(f"there is no element type for {dtype!r}")
    return f"{dtype.kind}{dtype.itemsize * 8}"


def empty(writer: Writer, shape: Sequence[int], dtype: Any) -> Any:
    """See Writer.empty()."""
    dtype = numpy.dtype(dtype)
    name = _name(dtype)
    loan = writer.loan(nbytes_of(name, shape), name, shape)
    return None if loan is None else numpy.asarray(loan)


def describe(array: Any) -> tuple[int, int, str, tuple[int, ...]]:
    """Address, bytes, element type and shape of a contiguous array."""
    if not array.flags.c_contiguous:
        raise ValueError("the array is not contiguous")
    return array.ctypes.data, array.nbytes, _name(array.dtype), array.shape


def rebuild(view: View) -> Any:
    """The array that a pickled one was, read-only."""
    return numpy.asarray(view)
