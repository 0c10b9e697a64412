# SPDX-License-Identifier: MIT
"""The extension in C.  Use the package tensorarena, which has all of this.

Element types are the library's names: "u8", "i64", "f16", "bf16", "f32",
"c64", "bool", "f8_e4m3fn"...; a number after "x" is a count of lanes.  Shapes
are row-major and contiguous, of at most 8 dimensions.  Times are in
nanoseconds where a name ends in _ns, otherwise in seconds.

Every call may be made from any thread.  Calls that copy, wait or go to the
engine drop the GIL.  In a forked child every inherited object is dead: calls
raise WrongProcess, and inherited memory must not be touched.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, final

from _typeshed import ReadableBuffer as Buffer

class Error(OSError):
    """A call failed; .errno says how, .strerror in tensorarena's terms."""

class StaleTicket(Error):
    """ESTALE: the slot has moved on, or this reader has released it."""

class NotAddressed(Error):
    """ENXIO: the publication was not meant for this reader."""

class WriterGone(Error):
    """EPIPE, ECONNREFUSED: the writer has closed the arena or died."""

class Evicted(Error):
    """EOWNERDEAD: the writer has thrown this reader out."""

class WrongProcess(Error):
    """EIO: the object was inherited by a forked child, where it is dead."""

@final
class Ticket:
    """Names one publication: the only thing that crosses a message queue.

    Immutable, hashable, picklable; valid on the same node while the arena
    lives.  Its bytes have a version, and so has its pickle, which is made of
    them.
    """

    def __new__(
        cls, arena: int, slot: int, generation: int, nbytes: int
    ) -> Self: ...
    @property
    def arena(self) -> int: ...
    @property
    def slot(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: Buffer, /) -> Self:
        """ValueError: not a ticket, or one of a later version."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

class _Memory:
    """What View and Loan have in common: bytes of a slot, exported.

    The memory is given up with the last object that shares it: this one, a
    memoryview, an array, a tensor, a slice of it, in whatever thread.

    The buffer protocol gives the type and shape where the struct module has a
    code for the type.  Where it has none (bf16, fp8, lanes) it gives plain
    bytes.
    """

    @property
    def address(self) -> int:
        """Where the bytes are in this process."""
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def tag(self) -> bytes:
        """The user's own bytes, at most 160."""
    @property
    def ticket(self) -> Ticket: ...
    @property
    def readonly(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """BufferError: read-only, and the consumer did not say that it can
        express that (max_version of 1.0 or later)."""
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def dlpack_bytes(self) -> Any:
        """A DLPack capsule of the plain bytes, whether or not they may be
        written to, for consumers that cannot express "read-only".  Writing in
        place to memory that is read-only kills the process (SIGSEGV)."""

@final
class View(_Memory):
    """A reader's hold on a published slot; read-only unless the arena is
    writable.  Writing to read-only memory kills the process (SIGSEGV)."""

    def release(self) -> None:
        """Gives up this object's share; what it was exported to keeps its own.
        It can be asked for nothing but its ticket afterwards."""
    @property
    def released(self) -> bool: ...
    def record_stream(self, stream: int, /) -> None:
        """The slot is to wait also for what this CUDA stream has been sent
        when the last object that shares the memory goes."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Loan(_Memory):
    """A slot to be filled in place, then published with commit().

    Published, the bytes are the readers': what is written through an array or
    tensor that was made of the loan before is written under their eyes.  Such
    an object stays valid memory, and the slot is not used again while it
    lives.  A loan that goes without commit() is given back unpublished.
    """

    @property
    def committed(self) -> bool: ...
    def write(self, buffer: Buffer, /, offset: int = 0) -> None:
        """Copies a contiguous buffer into the loan."""
    def write_address(
        self, address: int, nbytes: int, /, offset: int = 0
    ) -> None:
        """Copies memory of this process into the loan; it must be valid."""
    def commit(
        self,
        nbytes: int | None = None,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
        *,
        tag: Buffer | None = None,
        readers: Sequence[int] | None = None,
    ) -> Ticket | None:
        """Publishes the loan, or only nbytes of it, as it was described or is
        here; the ticket of the whole is the one that .ticket has foretold.

        None: declined ("no_reader"), and the loan is gone."""
    def abort(self) -> None:
        """Gives the slot back unpublished, as soon as nothing shares it."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """abort(), unless committed."""

class Writer:
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

    put(), loan() never block.  They decline with None, and .last_decline says
    why: "no_slot", "oversize", "no_memory", "limit" or "no_reader".
    """

    def __init__(
        self,
        slots: int = 8,
        slot_bytes: int = ...,
        seats: int = 0,
        *,
        engine: str = "auto",
        node: int = -1,
        copy_threads: int = 0,
        writable: bool = False,
        contiguous: bool = False,
        fallback_small: bool = False,
        node_strict: bool = False,
        memory_check: bool = True,
        any_uid: bool = False,
        socket_path: str | None = None,
    ) -> None: ...
    @property
    def handle(self) -> str:
        """To be given to the readers; a secret.  Lives as long as the writer."""
    @property
    def engine(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def slot_bytes(self) -> int: ...
    @property
    def last_decline(self) -> str | None: ...
    @property
    def declines(self) -> dict[str, int]:
        """How often, by reason, since the writer was made; a copy."""
    def decline(self, reason: str, /) -> None:
        """Counts a decline that a layer above has decided on."""
    def put(
        self,
        buffer: Buffer,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
        *,
        tag: Buffer = b"",
        readers: Sequence[int] | None = None,
    ) -> Ticket | None:
        """Copies a contiguous buffer into a slot and publishes it.

        dtype, shape: what the bytes are; by default what the buffer says, or
        bytes where it says nothing that has a name here
        readers: ids; every open seat by default"""
    def put_address(
        self,
        address: int,
        nbytes: int,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
        *,
        tag: Buffer = b"",
        readers: Sequence[int] | None = None,
    ) -> Ticket | None:
        """The same for memory of this process, which must be valid."""
    def loan(
        self,
        nbytes: int,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
        *,
        tag: Buffer = b"",
    ) -> Loan | None: ...
    def loan_at(self, address: int, /) -> Loan | None:
        """The loan whose memory is at an address of this process.

        None: the address is not in this arena.  StaleTicket: it is, but what
        was on loan there has been published or given back."""
    def populate(self, slots: int, nbytes: int) -> None:
        """Builds slots of that size now instead of in their first put()."""
    def trim(self, keep_bytes: int = 0) -> int:
        """Frees idle slots' memory until at most that much is left; returns
        the bytes freed.  EBUSY: pages are pinned, or an array or tensor made of
        a loan is still alive."""
    def retract(self, ticket: Ticket, /) -> int:
        """Calls a publication back, when its ticket could not be sent: to
        readers that have not seen it, by view() or next(), it is stale.  Returns
        how many have, and keep it.  StaleTicket: all have released it."""
    def evict(self, reader: int, /) -> None: ...
    def close_seat(self, seat: int, /) -> None: ...
    def connect(self) -> int:
        """Embedded engine: a descriptor for Reader(handle, fd=...), for one
        that cannot reach the socket by name.  The caller closes it."""
    def poll_fd(self) -> tuple[int, int]:
        """A descriptor and the poll events that mean "a slot is free"."""
    def stats(self) -> dict[str, Any]:
        """The fields of struct ta_stats; "readers" is a list of a dict for each
        open seat, "declines" is .declines, "cuda" the fields of struct
        ta_cuda_stats."""
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """No more publications.  The readers see that once no array or tensor
        made of a loan is left."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Reader:
    """Attaches to an arena.  This process's death frees all that it holds.

    fd: a descriptor from Writer.connect(), which is consumed
    """

    def __init__(self, handle: str, *, fd: int = -1) -> None: ...
    @property
    def handle(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def seat(self) -> int: ...
    # tensorarena.Reader has more to say of these two.
    def view(self, ticket: Ticket, *, stream: Any = None) -> View: ...
    def next(
        self, timeout: float | None = None, *, stream: Any = None
    ) -> View | None: ...
    def flush_releases(self) -> int:
        """Releases all that is due, now rather than soon; returns how many
        releases still wait for CUDA streams."""
    def prepare(self) -> int:
        """Pins every slot that has memory now; returns how many are.
        ENODEV: no CUDA context, or no CUDA."""
    def pin_budget(self, nbytes: int, /) -> None:
        """Most bytes this reader may keep pinned."""
    def poll_fd(self) -> tuple[int, int]:
        """A descriptor and the poll events that mean "next() has something".
        It may be called back meanwhile: call next() with a timeout of 0."""
    def writer_gone(self) -> bool:
        """Whether the writer is, so that nothing more will come.  Waits for
        nobody, and so may not know yet."""
    def stats(self) -> dict[str, Any]:
        """"id", "seat", "engine", "views" (publications held here), "queued"
        (releases about to happen), and "cuda", the fields of struct
        ta_cuda_stats, whose "pin_ns" is the time spent pinning."""
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """No new views.  The arena is left when the last object that shares
        its memory is gone."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Words:
    """Words of 32 bits in memory that processes share, by index.

    buffer: writable; kept
    """

    def __new__(cls, buffer: Buffer, /) -> Self: ...
    def load(self, index: int, /) -> int:
        """An acquire: all that came before the store() or ring() whose value
        this returns has happened for whoever calls it."""
    def store(self, index: int, value: int, /) -> None:
        """A release: see load()."""
    def grow(self, index: int, value: int, /) -> None:
        """Stores a value unless the word is at least that already, whoever else
        does the same."""
    def ring(self, index: int, /) -> None:
        """Adds one, a release, and wakes everybody who waits for the word."""
    def wait(self, index: int, value: int, timeout: float, /) -> None:
        """Sleeps while the word is that value, for timeout seconds at most.
        May return early; drops the GIL."""

def view_at(address: int, /) -> View | None:
    """A view that shares the memory at an address of this process, or None:
    no reader of this process holds a publication there."""

def dtype_bits(dtype: str, /) -> int:
    """Bits of one element, all lanes.  ValueError: no such type."""
