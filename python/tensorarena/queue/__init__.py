# SPDX-License-Identifier: MIT
"""A message queue from one writer to readers of this node and of others, with
the shape of vLLM's own.

    queue = MessageQueue(n_reader=4, n_local_reader=4, arena=writer)
    start_workers(queue.export_handle())
    queue.wait_until_ready()
    queue.enqueue(message)

    queue = MessageQueue.create_from_handle(handle, rank)       # in a worker
    queue.wait_until_ready()
    message = queue.dequeue()

Local readers get small messages through memory that they share with the writer;
large buffers and large messages through a ZeroMQ socket, and remote readers
everything.  With an arena, local readers get large tensors in its slots, and
what it declines as if there were none.

Messages are pickles: who can send one to a reader can make it do anything.
"""

from __future__ import annotations

import threading
from collections import namedtuple

from .ring import ShutDown, deadline_of, wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._arena import Writer
    from .ends import LocalReaderEnd, RemoteReaderEnd, WriterEnd

__all__ = ["Handle", "MessageQueue", "ShutDown"]


# What a reader needs to know; to be pickled, and a secret.  The ranks of local
# readers, the most messages that wait, and where to get them.
Handle = namedtuple("Handle", (
    "local_reader_ranks", "max_chunks", "buffer_handle",
    "local_subscribe_addr", "remote_subscribe_addr", "arena_handle"))


class MessageQueue:
    """The writer's end, and what makes the readers'.

    n_reader: how many there will be
    n_local_reader: how many of them on this node
    local_reader_ranks: their ranks; 0, 1... by default
    max_chunk_bytes: largest pickle that goes through shared memory
    max_chunks: most messages that some reader has not got yet
    connect_ip: address of this node for remote readers; found out by default
    arena: a Writer with n_local_reader seats, which the queue does not close
    copy: False: large buffers are sent from where they are, without a copy, as
        vLLM does, and must not be changed until every reader has them

    Calls may be made from any thread; they take turns, but for shutdown().
    RuntimeError: one from within another, by a signal handler or by what is
    pickled.  In a forked child all fail with tensorarena.WrongProcess.

    An exception that comes in the middle of a message's sending or receiving,
    from a signal handler for one, ends the queue: the others would take one
    message for another.
    """

    def __init__(
        self, n_reader: int, n_local_reader: int,
        local_reader_ranks: list[int] | None = None,
        max_chunk_bytes: int = 24 << 20, max_chunks: int = 10,
        connect_ip: str | None = None, *, arena: Writer | None = None,
        copy: bool = True,
    ) -> None:
        from .ends import WriterEnd

        if local_reader_ranks is None:
            local_reader_ranks = list(range(n_local_reader))
        n_remote_reader = n_reader - n_local_reader
        if (len(set(local_reader_ranks)) != n_local_reader
                or n_remote_reader < 0 or n_reader < 1):
            raise ValueError("ranks and numbers of readers do not agree")
        if n_remote_reader and connect_ip is None:
            connect_ip = _own_ip()
        end = WriterEnd(n_local_reader, n_remote_reader, max_chunk_bytes,
                        max_chunks, connect_ip or "", arena, copy)
        self._setup(end)
        self._writer: WriterEnd | None = end
        self.handle = Handle(
            list(local_reader_ranks), max_chunks,
            end.ring.handle if end.ring is not None else None,
            end.local.address if end.local is not None else None,
            end.remote.address if end.remote is not None else None,
            arena.handle if arena is not None and n_local_reader else None)

    def _setup(self, end: WriterEnd | LocalReaderEnd | RemoteReaderEnd
               ) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._caller: int | None = None
        self._ready = False
        self._writer = None
        self._reader: LocalReaderEnd | RemoteReaderEnd | None = None

    def export_handle(self) -> Handle:
        return self.handle

    @classmethod
    def create_from_handle(cls, handle: Handle, rank: int) -> MessageQueue:
        """A reader's end.

        rank: one of the handle's, or any other for a remote reader

        WriterGone: the writer is.  ValueError: the rank is taken, by whoever
        had it first.  PermissionError: the writer is another user's.
        """
        from .ends import LocalReaderEnd, RemoteReaderEnd

        self = cls.__new__(cls)
        end: LocalReaderEnd | RemoteReaderEnd
        if rank in handle.local_reader_ranks:
            end = LocalReaderEnd(handle, handle.local_reader_ranks.index(rank))
        elif handle.remote_subscribe_addr is not None:
            end = RemoteReaderEnd(handle)
        else:
            raise ValueError(f"the queue has no reader of rank {rank}")
        self._setup(end)
        self._reader = end
        self.handle = handle
        return self

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Until all readers and the writer have called it: from then on no
        message is missed."""
        self._end.check_process()
        if not self._ready:
            self._run(deadline_of(timeout), self._end.wait_until_ready)
            self._ready = True

    def enqueue(self, obj: Any, timeout: float | None = None) -> None:
        """Sends an object to all readers.

        timeout: in seconds; how long to wait for a reader that has max_chunks
            messages to get, None: for ever

        TimeoutError: nothing has been sent.  BrokenPipeError: no reader is left;
        one that has died is not waited for.  ShutDown: see shutdown().  What
        cannot be pickled is not sent.
        """
        if self._writer is None:
            raise RuntimeError("only the writer may enqueue")
        self._run(deadline_of(timeout), self._writer.send, obj)

    def dequeue(self, timeout: float | None = None,
                cancel: threading.Event | None = None) -> Any:
        """The next object.

        timeout: in seconds; None waits for ever
        cancel: ends the wait, within a tenth of a second

        TimeoutError: none has come.  ShutDown: see shutdown(), or cancelled.
        WriterGone: the writer has died, or the connection to it is lost, and all
        that it had sent has been dequeued.  What cannot be unpickled is gone.
        """
        if self._reader is None:
            raise RuntimeError("only readers may dequeue")
        return self._run(deadline_of(timeout), self._reader.receive, cancel)

    def broadcast_object(self, obj: Any = None) -> Any:
        """Enqueues the writer's object and returns it, to readers as well."""
        if self._writer is None:
            return self.dequeue()
        self.enqueue(obj)
        return obj

    def shutdown(self) -> None:
        """Ends the queue: the writer's for everybody, who still dequeues what
        has been sent; a reader's for itself, and nobody waits for it any more.

        May be called by any thread, also while another is in a call, which
        raises ShutDown then, as all later ones do.
        """
        self._end.stop()
        # A call that has the lock has been woken, and closes it then.
        self._close_if_stopped()

    def __del__(self) -> None:
        if hasattr(self, "_end"):
            self._end.drop()

    def _run(self, deadline: float | None, call: Callable[..., Any],
             *args: Any) -> Any:
        # First: a thread that is not in a forked child may have the lock.
        self._end.check_process()
        me = threading.get_ident()
        if self._caller == me:
            raise RuntimeError("this thread is in a call of the queue already")
        if not self._lock.acquire(timeout=wait_for(deadline)):
            raise TimeoutError("another thread is in a call of the queue")
        self._caller = me
        try:
            return call(deadline, *args)
        finally:
            self._caller = None
            self._lock.release()
            # Not sooner: who stopped it before that could not get the lock.
            self._close_if_stopped()

    def _close_if_stopped(self) -> None:
        """Unless somebody has the lock, who does this after he has released
        it."""
        if self._end.stopped and self._lock.acquire(blocking=False):
            try:
                self._end.close()
            finally:
                self._lock.release()


def _own_ip() -> str:
    """The address that others on the network reach this node by."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: it only asks for a route, to an example's address.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        ip: str = probe.getsockname()[0]
        return ip
