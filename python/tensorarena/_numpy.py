# SPDX-License-Identifier: MIT
"""Arrays on loan.  Imported only where NumPy is used."""

import numpy


def _name(dtype):
    """The library's name of a dtype; ValueError: it has none."""
    if dtype.kind == "b":
        return "bool"
    if dtype.kind not in "iufc" or not dtype.isnative or dtype.char in "gG":
        raise ValueError(f"there is no element type for {dtype!r}")
    return f"{dtype.kind}{dtype.itemsize * 8}"


def empty(writer, shape, dtype):
    """See Writer.empty()."""
    dtype = numpy.dtype(dtype)
    name = _name(dtype)
    elements = 1
    for extent in shape:
        elements *= extent
    loan = writer.loan(elements * dtype.itemsize, name, shape)
    return None if loan is None else numpy.asarray(loan)


def describe(array):
    """Address, bytes, element type and shape of a contiguous array."""
    if not array.flags.c_contiguous:
        raise ValueError("the array is not contiguous")
    return array.ctypes.data, array.nbytes, _name(array.dtype), array.shape


def rebuild(view):
    """The array that a pickled one was, read-only."""
    return numpy.asarray(view)
