# SPDX-License-Identifier: MIT
"""Pickling messages whose large parts go through an arena.

    pickler = ArenaPickler(file, writer)
    pickler.dump(message)       # copies into slots; nothing is published yet
    pickler.commit()            # now it is; right before the message is sent
    send(file.getvalue())       # when that fails: pickler.rollback()

This module diverts what lives in a slot on loan already: loans, and arrays from
Writer.empty().  tensorarena.torch.ArenaPickler diverts tensors as well.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
import weakref
from types import MethodType

from . import _arena, _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    class Writable(Protocol):
        """What a pickler writes to."""

        def write(self, data: bytes, /) -> object: ...


class ArenaPickler(pickle.Pickler):
    """A Pickler that publishes through an arena what can be, when committed.

    file, protocol, buffer_callback, dispatch_table: as of pickle.Pickler, for
        all that the arena does not take
    writer: the Writer
    readers: ids of those that the message is for; all by default

    Until commit() nothing is published.  A failure of dump() gives all slots
    back, and so does rollback() or dropping the pickler.  A pickler is for one
    thread, and for one message at a time: begin() comes before another.  As
    of pickle.Pickler, .dispatch_table may be set before dump(), which takes it
    as it is then.

    used: whether the message has anything to do with the arena.  If not,
        commit(), rollback() and begin() have nothing to do.
    """

    used = False

    def __init__(
        self, file: Writable, writer: _arena.Writer,
        protocol: int | None = None, *,
        buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None,
        dispatch_table: Mapping[type, Callable[[Any], Any]] | None = None,
        readers: Sequence[int] | None = None,
    ) -> None:
        if protocol is None or protocol < 0:
            protocol = pickle.HIGHEST_PROTOCOL
        super().__init__(file, protocol, buffer_callback=buffer_callback)
        self._callers = dispatch_table
        self.writer = writer
        self._protocol = protocol
        self._readers = readers
        self._drafts: list[
            tuple[_core.Loan, str | None, Sequence[int] | None]] = []
        self._published: list[_core.Ticket] = []
        self._table: dict[type, Callable[[Any], Any]] = {}

    def reducers(self) -> dict[type, Any]:
        """A dict of types and what reduces them: methods that take an object
        and return what __reduce__() would.

        They go before the caller's, in the dispatch_table.  That leaves objects
        of all other types as quick as they were; a reducer_override would be
        called for each.
        """
        reducers: dict[type, Any] = {_core.Loan: self._reduce_loan}
        numpy = _imported_numpy()
        if numpy is not None:
            reducers[numpy.ndarray] = self._reduce_array
        return reducers

    def dump(self, obj: Any) -> None:
        """Pickles an object.  What fails here leaves nothing behind."""
        self._divert_by_table()
        try:
            super().dump(obj)
        except BaseException:
            self.rollback()
            raise

    def _divert_by_table(self) -> None:
        """Puts the reducers into the dispatch_table, unless they are there."""
        table = getattr(self, "dispatch_table", None)
        if table is self._table:
            return
        if table is not None:
            self._callers = table
        self._table = self.make_table()
        self.dispatch_table = self._table

    def make_table(self) -> dict[type, Callable[[Any], Any]]:
        """The caller's dispatch_table with the reducers before it."""
        # These methods are not to keep alive the pickler that has them.
        me = weakref.proxy(self)
        table = dict(self._others())
        for kind, reducer in self.reducers().items():
            table[kind] = MethodType(reducer.__func__, me)
        return table

    def begin(self) -> None:
        """The next dump() is of another message.  What has been published of
        this one stays so; what has not is given back."""
        self._divert_by_table()
        if self._drafts:
            self.rollback()
        self._published = []
        self.used = False
        self.clear_memo()

    def _others(self) -> Mapping[type, Callable[[Any], Any]]:
        if self._callers is not None:
            return self._callers
        return copyreg.dispatch_table

    def plain(self, obj: Any) -> Any:
        """What an object is reduced to where there is no arena."""
        return self.plain_reducer(type(obj))(obj)

    def plain_reducer(self, kind: type) -> Callable[[Any], Any]:
        """What reduces objects of a type where there is no arena."""
        reducer = self._others().get(kind)
        if reducer is not None:
            return reducer
        protocol = self._protocol
        return lambda obj: obj.__reduce_ex__(protocol)

    def commit(self) -> bool:
        """Publishes all that the message refers to.  To be called right before
        it is sent, after everything else that may fail.

        False: declined, as no reader is left.  Nothing is published then and
        the message is of no use.
        """
        try:
            while self._drafts:
                loan, dtype, shape = self._drafts[0]
                ticket = loan.commit(None, dtype, shape, readers=self._readers)
                if ticket is None:
                    self.rollback()
                    return False
                del self._drafts[0]
                self._published.append(ticket)
        except BaseException:
            self.rollback()
            raise
        return True

    def rollback(self) -> None:
        """The message will not be sent: gives the slots back.

        What commit() has published already is called back: a reader that has
        unpickled the message all the same keeps what it has, and to the others
        the message is stale.
        """
        drafts, self._drafts = self._drafts, []
        for loan, _, _ in drafts:
            loan.abort()
        published, self._published = self._published, []
        for ticket in published:
            try:
                self.writer.retract(ticket)
            except _core.Error:
                # Every reader has released it, or the writer is closed: there
                # is nothing to call back any more.
                pass

    @property
    def tickets(self) -> list[_core.Ticket]:
        """Of what the message refers to, published or not yet."""
        return self._published + [loan.ticket for loan, _, _ in self._drafts]

    def draft(self, rebuild: Callable[[_core.View], Any], loan: _core.Loan,
              dtype: str | None = None, shape: Sequence[int] | None = None
              ) -> tuple[Any, ...]:
        """What a reducer returns for an object whose bytes are in a loan, which
        commit() will publish.  The reader calls rebuild(view)."""
        self.used = True
        self._drafts.append((loan, dtype, shape))
        return _rebuild, (rebuild, self.writer.handle, bytes(loan.ticket))

    def loan_of(self, address: int, nbytes: int) -> _core.Loan | None:
        """The loan that is just this memory, or None: then it has to be
        copied."""
        try:
            loan = self.writer.loan_at(address)
        except _core.StaleTicket:
            # Published before; the slot is kept while this memory lives.
            return None
        if loan is None or (loan.address, loan.nbytes) != (address, nbytes):
            return None
        return loan

    def _reduce_loan(self, loan: _core.Loan) -> Any:
        return self.draft(_identity, loan)

    def _reduce_array(self, array: Any) -> Any:
        from . import _numpy

        loan = None
        if array.flags.c_contiguous and not array.flags.owndata:
            loan = self.loan_of(array.ctypes.data, array.nbytes)
        if loan is None:
            return self.plain(array)
        _, _, dtype, shape = _numpy.describe(array)
        return self.draft(_numpy.rebuild, loan, dtype, shape)


def _imported_numpy() -> Any:
    """NumPy, if this process uses it."""
    return sys.modules.get("numpy")


def _identity(view: _core.View) -> _core.View:
    return view


def _attach(handle: str) -> _arena.Reader:
    try:
        return _arena.attach(handle)
    except OSError as error:
        raise type(error)(
            error.errno,
            "the message refers to an arena that this process cannot attach "
            f"to: {error.strerror}") from None


def _rebuild(rebuild: Callable[[_core.View], Any], handle: str,
             ticket: bytes) -> Any:
    """Unpickles what a draft stands for."""
    return rebuild(_attach(handle).view(_core.Ticket.from_bytes(ticket)))
