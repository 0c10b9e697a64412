# SPDX-License-Identifier: MIT
"""The writing end of a queue with an arena, and one message on its way.

What the queue pickles while it sends a message goes through MessagePickler, and
is published when the queue has room and the message in it, right before the
readers are told.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import threading
import time
import types

from . import _core
from ._vllm_arena import SWITCH, logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ._arena import Writer
    from ._vllm_arena import ShmTensorArena
    from ._vllm_pickler import MessagePickler

# At most one line in this time for each reason, in seconds.
LOG_INTERVAL_S = 60
# What is no news: these tensors are not meant to go through an arena.
EXPECTED = ("small", "empty")


class Outlet:
    """The arena of a queue that this process writes to.

    It is in use from start() on, when every local reader has attached, and not
    any more after stop().
    """

    def __init__(self, arena: ShmTensorArena, min_bytes: int,
                 number: int) -> None:
        self.arena = arena
        self.min_bytes = min_bytes
        self.number = number
        self.on = False
        # For the next message, if none is under way.
        self.pickler: MessagePickler | None = None
        self._stopped = False
        self._logged: dict[str, float] = {}

    @property
    def writer(self) -> Writer:
        return self.arena.writer

    def start(self) -> None:
        """Every reader has subscribed, and so has attached if it ever will."""
        if self.on or self._stopped:
            return
        try:
            rows = self.writer.stats()["readers"]
        except _core.Error as error:
            self.stop(f"it fails: {error}")
            return
        attached = [row for row in rows if row["reader"]]
        # A process outside this one's pid namespace has none.
        known = [row["pid"] for row in attached if row["pid"]]
        if len(attached) != self.arena.n_reader:
            self.stop(f"{len(attached)} of {self.arena.n_reader} local readers "
                      f"have attached; is {SWITCH} set for all of them?")
        elif len(set(known)) != len(known):
            self.stop("one process has several of its readers")
        else:
            self.on = True
            logger.info(
                "Message queue %d: tensors of %d MiB and more go to %d local "
                "readers through an arena of %d slots of %d MiB (%s engine).",
                self.number, self.min_bytes >> 20, self.arena.n_reader,
                self.arena.n_slots, self.arena.slot_bytes >> 20,
                self.writer.engine)

    def stop(self, why: str) -> None:
        """All goes vLLM's own way from now on.  The arena itself stays: there
        may be messages under way that refer to it."""
        self.on = False
        self._stopped = True
        logger.warning("Message queue %d goes on without its arena: %s.",
                       self.number, why)

    def declined(self, nbytes: int | None = None) -> None:
        """Says what the writer has just declined, if it is news."""
        reason = self.writer.last_decline
        if reason is None or reason in EXPECTED:
            return
        now = time.monotonic()
        if now < self._logged.get(reason, -LOG_INTERVAL_S) + LOG_INTERVAL_S:
            return
        self._logged[reason] = now
        logger.info(
            "Message queue %d: %s goes without the arena: %s (%d so far).",
            self.number,
            "a message" if nbytes is None else f"a tensor of {nbytes} bytes",
            reason, self.writer.declines.get(reason, 0))


class NoReader(Exception):
    """All local readers have left the arena."""


class Message:
    """What a queue is sending."""

    def __init__(self, queue: Any, outlet: Outlet) -> None:
        self.queue = queue
        self.outlet = outlet
        # Readers on other nodes, to whom it has to be sent without an arena.
        self.remote = 0
        self.sent = False
        self._picklers: list[MessagePickler] = []

    def pickler(self, file: Any,
                buffer_callback: Callable[..., Any] | None) -> MessagePickler:
        from ._vllm_pickler import MessagePickler

        pickler, self.outlet.pickler = self.outlet.pickler, None
        if pickler is None:
            pickler = MessagePickler(self.outlet)
        pickler.start(self, file, buffer_callback)
        self._picklers.append(pickler)
        return pickler

    def dumped(self, pickler: MessagePickler) -> None:
        """The queue has not looked at the number of its remote readers yet: it
        sends to them last."""
        if self.queue.n_remote_reader and pickler.tickets:
            self.remote = self.queue.n_remote_reader
            self.queue.n_remote_reader = 0

    @contextlib.contextmanager
    def publishing(self, room: Any) -> Iterator[Any]:
        """The queue's room for a message, which the readers see at the end."""
        with room as buffer:
            yield buffer
            self._commit()

    def _commit(self) -> None:
        try:
            for pickler in self._picklers:
                if not pickler.commit():
                    self.outlet.declined()
                    raise NoReader
        except _core.Error as error:
            self.outlet.stop(f"it fails: {error}")
            raise NoReader from error
        self.sent = True

    def rollback(self) -> None:
        """The message will not be sent.

        Nothing is taken back from readers that may have been told already.
        When what the queue does after that fails, sending the rest over a
        socket for one, some readers have it, and the others wait for it."""
        if self.sent:
            return
        for pickler in self._picklers:
            with contextlib.suppress(_core.Error):
                pickler.rollback()

    def close(self) -> None:
        """The queue is as it was, and nothing leads back here."""
        if self.remote:
            self.queue.n_remote_reader = self.remote
        while self._picklers:
            pickler = self._picklers.pop()
            with contextlib.suppress(_core.Error):
                pickler.finish()
                self.outlet.pickler = pickler


class _Current(threading.local):
    message: Message | None = None


_current = _Current()


def message_of(queue: Any) -> Message | None:
    """What this thread is sending through that queue."""
    message = _current.message
    return message if message is not None and message.queue is queue else None


def send(queue: Any, outlet: Outlet, enqueue: Callable[[], Any]) -> Any:
    """Has a queue send a message, with the arena if that is possible.

    enqueue: what the queue does without an arena
    """
    message = Message(queue, outlet)
    # What is being sent may broadcast something itself.
    before, _current.message = _current.message, message
    try:
        result = enqueue()
    except BaseException as error:
        message.rollback()
        if not isinstance(error, NoReader):
            raise
    else:
        if not message.remote:
            return result
    finally:
        _current.message = before
        message.close()
    if message.sent:
        return _send_remote(queue, enqueue)
    return enqueue()


def _send_remote(queue: Any, enqueue: Callable[[], Any]) -> Any:
    """The remote readers' share, whose bytes are all in the message."""
    local, queue.n_local_reader = queue.n_local_reader, 0
    try:
        return enqueue()
    finally:
        queue.n_local_reader = local


class PickleModule(types.ModuleType):
    """The module pickle, as the module of vLLM's queues sees it."""

    def __init__(self) -> None:
        super().__init__("pickle", pickle.__doc__)

    def __getattr__(self, name: str) -> Any:
        return getattr(pickle, name)

    def Pickler(self, file: Any, protocol: int | None = None,
                **options: Any) -> pickle.Pickler:
        message = _current.message
        if message is None or protocol != pickle.HIGHEST_PROTOCOL or \
                set(options) - {"buffer_callback"}:
            return pickle.Pickler(file, protocol, **options)
        return message.pickler(file, options.get("buffer_callback"))

    def dumps(self, obj: Any, protocol: int | None = None,
              **options: Any) -> bytes:
        if _current.message is None:
            return pickle.dumps(obj, protocol, **options)
        with io.BytesIO() as file:
            self.Pickler(file, protocol, **options).dump(obj)
            return file.getvalue()
