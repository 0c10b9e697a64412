# SPDX-License-Identifier: MIT
"""Large tensors from one engine process to its GPU workers with one memcpy.

The engine makes an arena and gives its handle to the workers.  What it puts
goes into a slot once; a ticket, over any message queue, is all that has to
reach the workers, who look at the bytes in place.

    writer = tensorarena.Writer(slots=8, slot_bytes=256 << 20, seats=4)
    send(writer.handle)
    ticket = writer.put(buffer)         # None: declined, send it the old way

    reader = tensorarena.Reader(handle)
    view = reader.view(ticket)          # memoryview(view), numpy.asarray(view)

A slot is free again when, in every worker, the last object that shares its
memory is gone: view, memoryview, array, tensor or slice.  Views are read-only:
writing to one in place kills the process.  See tensorarena.torch for tensors
and for pickling them, tensorarena.metrics for counters.
"""

from ._arena import Reader, Writer, attach, detach
from ._core import (
    Error,
    Evicted,
    Loan,
    NotAddressed,
    StaleTicket,
    Ticket,
    View,
    WriterGone,
    WrongProcess,
    dtype_bits,
)
from ._version import __version__

__all__ = [
    "Error",
    "Evicted",
    "Loan",
    "NotAddressed",
    "Reader",
    "StaleTicket",
    "Ticket",
    "View",
    "Writer",
    "WriterGone",
    "WrongProcess",
    "__version__",
    "attach",
    "detach",
    "dtype_bits",
]
