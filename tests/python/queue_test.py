#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The message queue, without NumPy and PyTorch: see queue_tensors_test."""

import gc
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
import unittest
import weakref

import zmq

from harness import HANG_S, MIB, Case, Worker, arena, await_free, \
    await_true, main, pattern, published, run_case
import tensorarena
from tensorarena.queue import MessageQueue, ShutDown, bus, ends

HOME = "127.0.0.1"
NOBODY = 65534


class Released:
    """A lock, and what happens right before it is released for the first
    time."""

    def __init__(self, lock, before):
        self.acquire = lock.acquire
        self._lock = lock
        self._before = before

    def release(self):
        before, self._before = self._before, lambda: None
        before()
        self._lock.release()


def reader_in_a_call():
    """A queue, its reader, and the thread in which that one waits."""
    made = MessageQueue(1, 1)
    reader = MessageQueue.create_from_handle(made.export_handle(), 0)
    made.wait_until_ready(HANG_S)
    thread = threading.Thread(target=reader.dequeue, args=(HANG_S,))
    thread.start()
    await_true(lambda: reader._caller is not None)
    return made, reader, thread


class Large:
    """An object that lets its bytes go out of band."""

    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        if protocol < 5:
            return Large, (bytes(self.data),)
        return Large, (pickle.PickleBuffer(self.data),)

    def __eq__(self, other):
        return isinstance(other, Large) and \
            bytes(self.data) == bytes(other.data)


class Poison:
    """An object that nobody can unpickle."""

    def __reduce__(self):
        return _fail, ()


def _fail():
    raise ValueError("cannot be unpickled")


class Unpicklable:
    def __reduce__(self):
        raise ValueError("cannot be pickled")


def mixture():
    """Messages that go all ways there are."""
    return [{"step": 1}, b"", Large(pattern(3 * MIB)), pattern(5 * MIB, 2),
            [Large(pattern(100)), Large(pattern(2 * MIB, 4))], list(range(500))]


def on_loan(writer, data):
    loan = writer.loan(len(data))
    loan.write(data)
    return loan


# What workers do.

def attach(state, handle, rank):
    state.queue = MessageQueue.create_from_handle(handle, rank)
    state.kept = []


def join(state, handle, rank):
    attach(state, handle, rank)
    state.queue.wait_until_ready(HANG_S)


def dequeue(state, timeout=HANG_S):
    """A message that can cross a pipe: a view as its bytes."""
    message = state.queue.dequeue(timeout)
    return bytes(message) if isinstance(message, tensorarena.View) else message


def dequeue_all(state, number):
    return [dequeue(state) for _ in range(number)]


def keep(state):
    state.kept.append(state.queue.dequeue(HANG_S))


def why(state):
    try:
        return state.queue.dequeue(HANG_S)
    except Exception as error:
        return type(error).__name__


def shut_down(state):
    state.queue.shutdown()


def create(state, *sizes):
    state.queue = MessageQueue(*sizes, connect_ip=HOME)
    return state.queue.export_handle()


def ready(state):
    state.queue.wait_until_ready(HANG_S)


def enqueue(state, *messages):
    for message in messages:
        state.queue.enqueue(message, HANG_S)


def become_nobody(state):
    # It may not write to root's.
    tempfile.tempdir = None
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def reached(state, names):
    """At which of these somebody listens and lets this process in."""
    return [name for name in names if _lets_in(name)]


def _lets_in(name):
    with socket.socket(socket.AF_UNIX) as probe:
        return not probe.connect_ex(name)


def sockets_of(kind, inode):
    """This process's, as everybody can see them.

    inode: in which column of the kernel's table that is
    """
    own = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            own.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:
            pass
    with open(f"/proc/net/{kind}") as table:
        rows = [line.split() for line in table]
    return [row for row in rows if f"socket:[{row[inode]}]" in own]


def names_listened_at():
    return [row[7].replace("@", "\0") for row in sockets_of("unix", 6)
            if len(row) > 7]


class Group:
    """A queue of this process, and workers that read from it."""

    def __init__(self, method, local, remote=0, **options):
        self.queue = MessageQueue(local + remote, local, connect_ip=HOME,
                                  **options)
        handle = self.queue.export_handle()
        self.workers = [Worker(method) for _ in range(local + remote)]
        for rank, worker in enumerate(self.workers):
            worker.start(join, handle, rank)
        self.queue.wait_until_ready(HANG_S)
        for worker in self.workers:
            worker.result()

    def each(self, function, *args):
        for worker in self.workers:
            worker.start(function, *args)
        return [worker.result() for worker in self.workers]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.queue.shutdown()
        for worker in self.workers:
            worker.kill()


class Sending(Case):
    def broadcast(self, method, local, remote=0, **options):
        messages = mixture()
        with Group(method, local, remote, **options) as group:
            for worker in group.workers:
                worker.start(dequeue_all, len(messages))
            for message in messages:
                group.queue.enqueue(message, HANG_S)
            for worker in group.workers:
                self.assertEqual(worker.result(), messages)

    def test_two_processes_by_spawn(self):
        self.broadcast("spawn", 1, max_chunk_bytes=MIB)

    def test_two_processes_by_fork(self):
        self.broadcast("fork", 1, max_chunk_bytes=MIB)

    def test_five_processes_by_spawn(self):
        self.broadcast("spawn", 4, max_chunk_bytes=MIB, max_chunks=2)

    def test_five_processes_by_fork(self):
        self.broadcast("fork", 4, max_chunk_bytes=MIB, max_chunks=2)

    def test_local_and_remote_readers(self):
        self.broadcast("spawn", 2, 2, max_chunk_bytes=MIB, max_chunks=2)

    def test_remote_readers_only(self):
        self.broadcast("fork", 0, 2, max_chunks=3)

    def test_large_buffers_without_a_copy(self):
        self.broadcast("fork", 2, copy=False)

    def test_what_the_writer_changes_afterwards_nobody_sees(self):
        with Group("spawn", 1) as group:
            data = bytearray(pattern(8 * MIB))
            for n in range(8):
                data[0] = n
                group.queue.enqueue(Large(data), HANG_S)
            data[:] = bytes(len(data))
            for n in range(8):
                seen, = group.each(dequeue)
                self.assertEqual(seen.data[0], n)
                self.assertEqual(seen.data[1:], pattern(8 * MIB)[1:])

    def test_many_messages_through_a_small_ring(self):
        with Group("spawn", 2, max_chunk_bytes=64, max_chunks=2) as group:
            messages = [pattern(n % 90, n) for n in range(400)]
            for worker in group.workers:
                worker.start(dequeue_all, len(messages))
            for message in messages:
                group.queue.enqueue(message, HANG_S)
            for worker in group.workers:
                self.assertEqual(worker.result(), messages)

    def test_an_engine_that_is_another_process(self):
        with Worker("spawn") as engine, Worker("spawn") as reader:
            handle = engine.call(create, 1, 1)
            reader.start(join, handle, 0)
            engine.call(ready)
            reader.result()
            engine.call(enqueue, *mixture())
            self.assertEqual(reader.call(dequeue_all, 6), mixture())

    def test_broadcast_object_is_for_both_ends(self):
        with Group("spawn", 1) as group:
            self.assertEqual(group.queue.broadcast_object([5]), [5])
            self.assertEqual(group.each(_broadcast_object), [[5]])

    def test_ranks_are_the_callers(self):
        messages = MessageQueue(3, 2, [7, 3], connect_ip=HOME)
        handle = pickle.loads(pickle.dumps(messages.export_handle()))
        readers = [MessageQueue.create_from_handle(handle, rank)
                   for rank in (3, 7, 0)]
        messages.wait_until_ready(HANG_S)
        messages.enqueue("x")
        for reader in readers:
            reader.wait_until_ready(HANG_S)
            self.assertEqual(reader.dequeue(HANG_S), "x")
        with self.assertRaisesRegex(ValueError, "such a reader already"):
            MessageQueue.create_from_handle(handle, 3)

    def test_numbers_of_readers_have_to_agree(self):
        for arguments in ((0, 0), (1, 2), (2, 2, [1]), (2, 2, [1, 1]),
                          (1, 1, None, 0), (1, 1, None, 5, 0)):
            self.assertRaises(ValueError, MessageQueue, *arguments)
        messages = MessageQueue(1, 1)
        with self.assertRaisesRegex(ValueError, "no reader of rank 5"):
            MessageQueue.create_from_handle(messages.export_handle(), 5)

    def test_each_end_does_its_own_part(self):
        messages = MessageQueue(1, 1)
        reader = MessageQueue.create_from_handle(messages.export_handle(), 0)
        self.assertRaises(RuntimeError, messages.dequeue, 0)
        self.assertRaises(RuntimeError, reader.enqueue, 1)


def _broadcast_object(state):
    return state.queue.broadcast_object()


class Waiting(Case):
    def test_nobody_comes(self):
        for local, remote in ((1, 0), (0, 1)):
            messages = MessageQueue(1, local, connect_ip=HOME)
            self.assertRaises(TimeoutError, messages.wait_until_ready, 0.02)
            reader = MessageQueue.create_from_handle(
                messages.export_handle(), 0)
            self.assertRaises(TimeoutError, reader.wait_until_ready, 0.02)

    def test_no_message_comes(self):
        with Group("spawn", 1, 1) as group:
            for worker in group.workers:
                for timeout in (0, 0.02):
                    with self.assertRaises(TimeoutError):
                        worker.call(dequeue, timeout)
            group.queue.enqueue("now")
            self.assertEqual(group.each(dequeue), ["now"] * 2)

    def test_a_message_that_has_come_needs_no_time(self):
        with Group("spawn", 1, 1, max_chunk_bytes=MIB) as group:
            for message in (1, Large(pattern(MIB))):
                group.queue.enqueue(message)
                for worker in group.workers:
                    await_true(lambda: worker.call(_dequeue_now) == message)

    def test_a_local_reader_lags(self):
        with Group("spawn", 2, max_chunks=2) as group:
            for n in range(2):
                group.queue.enqueue(n, 0)
                group.workers[0].call(dequeue)
            self.assertRaises(TimeoutError, group.queue.enqueue, 2, 0.02)
            self.assertEqual(group.workers[1].call(dequeue), 0)
            group.queue.enqueue(2, HANG_S)
            self.assertEqual(group.workers[1].call(dequeue_all, 2), [1, 2])
            self.assertEqual(group.workers[0].call(dequeue), 2)

    def test_a_remote_reader_lags_and_misses_nothing(self):
        with Group("spawn", 0, 1, max_chunks=1) as group:
            reader, = group.workers
            os.kill(reader.process.pid, signal.SIGSTOP)
            sent = 0
            with self.assertRaises(TimeoutError):
                for sent in range(100):
                    group.queue.enqueue((sent, pattern(4 * MIB)), 0.05)
            self.assertGreater(sent, 0)
            os.kill(reader.process.pid, signal.SIGCONT)
            self.assertEqual(reader.call(_dequeue_firsts, sent),
                             list(range(sent)))
            group.queue.enqueue("next", HANG_S)
            self.assertEqual(reader.call(dequeue), "next")

    def test_a_wait_for_a_message_can_be_cancelled(self):
        with Group("spawn", 1, 1) as group:
            self.assertEqual(group.each(_dequeue_cancelled), ["ShutDown"] * 2)
            group.queue.enqueue(1)
            self.assertEqual(group.each(dequeue), [1, 1])


def _dequeue_now(state):
    try:
        return state.queue.dequeue(0)
    except TimeoutError:
        return None


def _dequeue_firsts(state, number):
    return [state.queue.dequeue(HANG_S)[0] for _ in range(number)]


def _dequeue_cancelled(state):
    cancel = threading.Event()
    timer = threading.Timer(0.02, cancel.set)
    timer.start()
    try:
        state.queue.dequeue(HANG_S, cancel)
    except ShutDown as error:
        return type(error).__name__
    finally:
        timer.join()


class ShuttingDown(Case):
    def linger(self):
        """Where a processor is emulated, a second is not enough."""
        self.addCleanup(setattr, bus, "_LINGER_MS", bus._LINGER_MS)
        bus._LINGER_MS = int(HANG_S * 1000)

    def test_the_writer_wakes_all_readers(self):
        self.linger()
        with Group("spawn", 1, 1) as group:
            for worker in group.workers:
                worker.start(why)
            time.sleep(0.05)
            group.queue.shutdown()
            self.assertEqual([w.result() for w in group.workers],
                             ["ShutDown"] * 2)
            self.assertEqual(group.each(why), ["ShutDown"] * 2)
            self.assertRaises(ShutDown, group.queue.enqueue, 1)
            group.queue.shutdown()

    def test_what_was_sent_before_is_dequeued_first(self):
        self.linger()
        with Group("spawn", 1, 1, max_chunk_bytes=MIB) as group:
            for message in mixture():
                group.queue.enqueue(message, HANG_S)
            group.queue.shutdown()
            for worker in group.workers:
                self.assertEqual(worker.call(dequeue_all, 6), mixture())
                self.assertEqual(worker.call(why), "ShutDown")

    def test_a_writer_that_is_dropped_is_shut_down(self):
        self.linger()
        with Worker("spawn") as local, Worker("spawn") as remote:
            messages = MessageQueue(2, 1, connect_ip=HOME)
            for rank, worker in enumerate((local, remote)):
                worker.start(join, messages.export_handle(), rank)
            messages.wait_until_ready(HANG_S)
            messages.enqueue(1)
            del messages
            for worker in local, remote:
                worker.result()
                self.assertEqual(worker.call(why), 1)
                self.assertEqual(worker.call(why), "ShutDown")

    def test_a_queue_that_is_dropped_keeps_nothing_alive(self):
        gc.disable()
        try:
            writer = arena(seats=1)
            made = MessageQueue(1, 1, arena=writer)
            reader = MessageQueue.create_from_handle(made.export_handle(), 0)
            made.wait_until_ready(HANG_S)
            made.enqueue([Large(pattern(MIB)), on_loan(writer, b"x")])
            reader.dequeue(HANG_S)
            left = [weakref.ref(thing) for thing in
                    (writer, made, reader, made._writer, reader._reader)]
            del writer, made, reader
            self.assertEqual([ref() for ref in left], [None] * 5)
        finally:
            gc.enable()

    def test_an_interpreter_ends_though_its_queues_are_open(self):
        self.assertEqual(run_case("queue_exit_case.py"), (0, b"1\n"))

    def test_a_blocked_writer_is_woken_by_another_thread(self):
        for local in (1, 0):
            with Group("spawn", local, 1 - local, max_chunks=1) as group:
                failed = []

                def run():
                    try:
                        for _ in range(100):
                            group.queue.enqueue(pattern(4 * MIB))
                    except ShutDown as error:
                        failed.append(error)

                os.kill(group.workers[0].process.pid, signal.SIGSTOP)
                thread = threading.Thread(target=run)
                thread.start()
                time.sleep(0.1)
                group.queue.shutdown()
                thread.join(HANG_S)
                self.assertEqual(len(failed), 1)

    def test_a_blocked_reader_is_woken_by_another_thread(self):
        with Group("spawn", 1, 1) as group:
            self.assertEqual(group.each(_shut_down_in_a_call),
                             ["ShutDown"] * 2)

    def test_a_shutdown_just_before_a_call_returns_is_not_lost(self):
        made = MessageQueue(1, 0, connect_ip=HOME)
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        made.wait_until_ready(HANG_S)
        made._lock = Released(made._lock, made.shutdown)
        made.enqueue(1, HANG_S)
        self.assertEqual(reader.dequeue(HANG_S), 1)
        self.assertRaises(ShutDown, reader.dequeue, HANG_S)

    def test_nobody_waits_for_a_reader_that_is_shut_down(self):
        with Group("spawn", 2, max_chunks=1) as group:
            group.workers[0].call(shut_down)
            for n in range(3):
                group.queue.enqueue(n, HANG_S)
                self.assertEqual(group.workers[1].call(dequeue), n)

    def test_nothing_is_left_behind(self):
        # Those of other programs may go meanwhile.
        names = set(os.listdir("/dev/shm"))

        def left():
            return (set(os.listdir("/dev/shm")) - names,
                    os.listdir("/proc/self/fd"), threading.active_count())

        # The first process by spawn comes with one that stays.
        with Worker("spawn"):
            pass
        before = left()
        for _ in range(3):
            with Group("spawn", 1, 1) as group:
                group.queue.enqueue(Large(pattern(MIB)))
                group.each(dequeue)
            del group
        await_true(lambda: left() == before)


def _shut_down_in_a_call(state):
    timer = threading.Timer(0.05, state.queue.shutdown)
    timer.start()
    try:
        return why(state)
    finally:
        timer.join()


class Dying(Case):
    def test_a_reader_killed_while_holding_is_not_waited_for(self):
        writer = arena(slots=2, seats=2)
        with Group("spawn", 2, max_chunks=1, arena=writer) as group:
            group.queue.enqueue(on_loan(writer, pattern(1000)), HANG_S)
            group.each(keep)
            self.assertEqual(published(writer), 1)
            group.workers[0].kill()
            for n in range(3):
                group.queue.enqueue(n, HANG_S)
                self.assertEqual(group.workers[1].call(dequeue), n)
            group.workers[1].call(_drop)
            await_free(writer)

    def test_a_remote_reader_killed_is_not_waited_for(self):
        with Group("spawn", 0, 2, max_chunks=1) as group:
            group.workers[0].kill()
            for n in range(5):
                group.queue.enqueue((n, pattern(MIB)), HANG_S)
                self.assertEqual(group.workers[1].call(_dequeue_firsts, 1),
                                 [n])

    def test_a_writer_without_readers_is_told(self):
        for local in (1, 0):
            with Group("spawn", local, 1 - local, max_chunks=1) as group:
                group.queue.enqueue(1)
                group.workers[0].kill()
                with self.assertRaises(BrokenPipeError):
                    while True:
                        group.queue.enqueue(2, HANG_S)

    def test_a_writer_that_was_killed_is_heard_out(self):
        with Worker("spawn") as engine, Worker("spawn") as local, \
                Worker("fork") as remote:
            handle = engine.call(create, 2, 1)
            for rank, worker in enumerate((local, remote)):
                worker.start(join, handle, rank)
            engine.call(ready)
            for worker in local, remote:
                worker.result()
            engine.call(enqueue, 1)
            for worker in local, remote:
                self.assertEqual(worker.call(why), 1)
                worker.start(why)
            time.sleep(0.05)
            engine.kill()
            for worker in local, remote:
                self.assertEqual(worker.result(), "WriterGone")
                self.assertEqual(worker.call(why), "WriterGone")
            with self.assertRaises(tensorarena.WriterGone):
                MessageQueue.create_from_handle(handle, 0)


def _drop(state):
    state.kept.clear()


class Others(Case):
    """Who is no reader."""

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_another_user_has_no_way_to_what_local_readers_get(self):
        made = MessageQueue(1, 1)
        handle = made.export_handle()
        names = [*names_listened_at(),
                 handle.local_subscribe_addr.removeprefix("ipc://")]
        with Worker("fork") as root, Worker("fork") as nobody:
            nobody.call(become_nobody)
            self.assertEqual(nobody.call(reached, names), [])
            self.assertIn(names[-1], root.call(reached, names))
            self.assertRaises(PermissionError, nobody.call, attach, handle, 0)
            root.start(join, handle, 0)
            made.wait_until_ready(HANG_S)
            root.result()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_root_may_read_what_another_user_sends(self):
        with Worker("fork") as nobody:
            nobody.call(become_nobody)
            reader = MessageQueue.create_from_handle(
                nobody.call(create, 1, 1), 0)
            nobody.call(ready)
            for message in mixture():
                nobody.call(enqueue, message)
                self.assertEqual(reader.dequeue(HANG_S), message)

    def test_whoever_reaches_the_port_gets_what_remote_readers_get(self):
        made = MessageQueue(1, 0, connect_ip=HOME)
        with zmq.Context() as context, context.socket(zmq.SUB) as anybody:
            anybody.setsockopt(zmq.RCVTIMEO, int(HANG_S * 1000))
            anybody.subscribe(b"")
            anybody.connect(made.export_handle().remote_subscribe_addr)
            made.wait_until_ready(HANG_S)
            made.enqueue("to all")
            self.assertEqual(anybody.recv(), b"R")
            self.assertEqual(pickle.loads(anybody.recv()), "to all")

    def test_a_queue_of_one_node_has_no_port(self):
        before = len(sockets_of("tcp", 9))
        made = MessageQueue(1, 0, connect_ip=HOME)
        self.assertEqual(len(sockets_of("tcp", 9)), before + 1)
        del made
        made = MessageQueue(1, 1)
        self.assertEqual(len(sockets_of("tcp", 9)), before)
        self.assertIsNone(made.export_handle().remote_subscribe_addr)


class Files(Case):
    def in_a_folder(self, name):
        """Lets temporary files be there."""
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        tempfile.tempdir = os.path.join(folder.name, name)
        return tempfile.tempdir

    def test_a_folder_with_a_long_name_will_do_and_stays_empty(self):
        folder = self.in_a_folder("x" * 200)
        os.mkdir(folder)
        made = MessageQueue(1, 1)
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        self.assertEqual(os.listdir(folder), [])
        made.wait_until_ready(HANG_S)
        made.enqueue(Large(pattern(2 * MIB)))
        self.assertEqual(reader.dequeue(HANG_S), Large(pattern(2 * MIB)))

    def test_without_a_folder_for_them_shared_memory_will_do(self):
        self.in_a_folder("missing")
        made = MessageQueue(1, 1)
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        made.wait_until_ready(HANG_S)
        made.enqueue(Large(pattern(2 * MIB)))
        self.assertEqual(reader.dequeue(HANG_S), Large(pattern(2 * MIB)))

    def test_without_any_folder_nothing_is_left_of_a_queue(self):
        self.addCleanup(setattr, bus, "_SHARED_MEMORY", bus._SHARED_MEMORY)
        bus._SHARED_MEMORY = self.in_a_folder("missing")
        before = os.listdir("/proc/self/fd")
        self.assertRaises(FileNotFoundError, MessageQueue, 1, 1)
        await_true(lambda: os.listdir("/proc/self/fd") == before)


def break_off(socket, taken):
    """Lets an exception come when a socket has taken so many frames."""
    real = socket.send
    left = [None] * taken

    def send(*args, **options):
        if left:
            real(*args, **options)
            left.pop()
        if not left:
            del socket.send
            raise KeyboardInterrupt

    socket.send = send


class Failing(Case):
    def setUp(self):
        self.writer = arena(slots=2, seats=1)
        self.queue = MessageQueue(1, 1, arena=self.writer)
        self.reader = MessageQueue.create_from_handle(
            self.queue.export_handle(), 0)
        self.queue.wait_until_ready(HANG_S)
        self.reader.wait_until_ready(HANG_S)

    def tearDown(self):
        self.queue.shutdown()
        self.reader.shutdown()
        super().tearDown()

    def check_next(self):
        """The next message is none the worse for it."""
        self.assertEqual(self.writer.stats()["free"], 2)
        for message in mixture():
            self.queue.enqueue(message, HANG_S)
            self.assertEqual(self.reader.dequeue(HANG_S), message)
        self.queue.enqueue(on_loan(self.writer, b"data"))
        self.assertEqual(bytes(self.reader.dequeue(HANG_S)), b"data")

    def test_a_message_that_cannot_be_pickled_rolls_slots_back(self):
        with self.assertRaisesRegex(ValueError, "cannot be pickled"):
            self.queue.enqueue([on_loan(self.writer, b"x"),
                                Large(pattern(2 * MIB)), Unpicklable()])
        self.check_next()

    def check_end(self, error, socket, name):
        """What breaks off in the middle of a message ends the queue: what comes
        next would be taken for the rest of it."""
        def fail(*_, **__):
            raise error

        setattr(socket, name, fail)
        with self.assertRaises(type(error)):
            self.queue.enqueue([on_loan(self.writer, b"x"),
                                Large(pattern(2 * MIB))])
            self.reader.dequeue(HANG_S)

    def test_a_send_that_breaks_off_rolls_slots_back_and_ends_the_queue(self):
        self.check_end(KeyboardInterrupt(), self.queue._writer.local, "send")
        self.assertEqual(self.writer.stats()["free"], 2)
        with self.assertRaises(ShutDown):
            self.queue.enqueue(1)
        with self.assertRaises(ShutDown):
            self.reader.dequeue(HANG_S)

    def test_between_socket_and_ring_as_well(self):
        self.check_end(KeyboardInterrupt(), self.queue._writer.ring, "put")
        with self.assertRaises(ShutDown):
            self.reader.dequeue(HANG_S)

    def test_a_receive_that_breaks_off_ends_the_readers_end(self):
        self.check_end(KeyboardInterrupt(), self.reader._reader._bus, "take")
        with self.assertRaises(ShutDown):
            self.reader.dequeue(HANG_S)
        with self.assertRaises(BrokenPipeError):
            while True:
                self.queue.enqueue(1, HANG_S)

    def test_what_breaks_off_between_frames_no_remote_reader_gets(self):
        message = [Large(pattern(2 * MIB, n)) for n in range(2)]
        for taken in range(4):
            with self.subTest(taken=taken):
                made = MessageQueue(1, 0, connect_ip=HOME)
                reader = MessageQueue.create_from_handle(
                    made.export_handle(), 0)
                made.wait_until_ready(HANG_S)
                made.enqueue("whole")
                break_off(made._writer.remote._socket, taken)
                with self.assertRaises(KeyboardInterrupt):
                    made.enqueue(message)
                self.assertEqual(reader.dequeue(HANG_S), "whole")
                if taken == 3:
                    self.assertEqual(reader.dequeue(HANG_S), message)
                for _ in range(2):
                    self.assertRaises(ShutDown, reader.dequeue, HANG_S)

    def test_an_interrupted_wait_loses_nothing(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with self.assertRaises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                self.reader.dequeue(HANG_S)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.check_next()

    def test_a_message_that_finds_no_room_takes_no_slot(self):
        for n in range(10):
            self.queue.enqueue(n)
        with self.assertRaises(TimeoutError):
            self.queue.enqueue(on_loan(self.writer, b"x"), 0.02)
        for n in range(10):
            self.assertEqual(self.reader.dequeue(), n)
        self.check_next()

    def test_what_cannot_be_unpickled_is_gone(self):
        for message in (Poison(), [Large(pattern(2 * MIB)), Poison()]):
            self.queue.enqueue(message)
            with self.assertRaisesRegex(ValueError, "cannot be unpickled"):
                self.reader.dequeue(HANG_S)
        self.check_next()


class Nested:
    """What is pickled calls the queue."""

    def __init__(self, queue):
        self.queue = queue

    def __reduce__(self):
        self.queue.enqueue("inner")
        return bool, ()


class Turns(Case):
    def test_a_call_within_a_call_is_refused(self):
        made = MessageQueue(1, 1)
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        made.wait_until_ready(HANG_S)
        with self.assertRaisesRegex(RuntimeError, "in a call"):
            made.enqueue(Nested(made))
        made.enqueue(1)
        self.assertEqual(reader.dequeue(HANG_S), 1)

    def test_waiting_for_ones_turn_has_its_time(self):
        made, reader, thread = reader_in_a_call()
        with self.assertRaises(TimeoutError):
            reader.dequeue(0.02)
        made.enqueue(1)
        thread.join()

    def test_getting_ready_twice_costs_no_message(self):
        made = MessageQueue(1, 0, connect_ip="127.0.0.1")
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        thread = threading.Thread(target=reader.wait_until_ready,
                                  args=(HANG_S,))
        thread.start()
        made.wait_until_ready(HANG_S)
        made.wait_until_ready(HANG_S)
        thread.join()
        made.enqueue("first")
        reader.wait_until_ready(HANG_S)
        self.assertEqual(reader.dequeue(HANG_S), "first")

    def test_a_reader_that_has_gone_again_is_not_waited_for(self):
        made = MessageQueue(2, 2)
        first = MessageQueue.create_from_handle(made.export_handle(), 0)
        with Worker("spawn") as gone:
            gone.call(join_only, made.export_handle(), 1)
            gone.kill()
        made.wait_until_ready(HANG_S)
        made.enqueue([1])
        self.assertEqual(first.dequeue(HANG_S), [1])


def join_only(state, handle, rank):
    state.queue = MessageQueue.create_from_handle(handle, rank)


class Same(Case):
    """With an arena messages that it has no part in are, byte for byte, as they
    are without."""

    def frames_of(self, messages, **options):
        """What readers get, local and remote."""
        made = MessageQueue(2, 1, connect_ip=HOME, max_chunk_bytes=MIB,
                            **options)
        readers = [MessageQueue.create_from_handle(made.export_handle(), rank)
                   for rank in range(2)]
        made.wait_until_ready(HANG_S)
        real, ends.load = ends.load, lambda frames: list(map(bytes, frames))
        try:
            for reader in readers:
                reader.wait_until_ready(HANG_S)
            seen = []
            for message in messages:
                made.enqueue(message, HANG_S)
                ring = readers[0]._reader._ring
                seen.append(bytes(ring.get(None)))
                seen.extend(reader.dequeue(HANG_S) for reader in readers)
            return seen
        finally:
            ends.load = real

    def test_frames_are_the_same_with_an_arena_and_without(self):
        messages = [*mixture(), tensorarena.Ticket(1, 2, 3, 4), Case, print]
        with_arena = self.frames_of(messages, arena=arena(seats=1))
        self.assertEqual(with_arena, self.frames_of(messages))
        self.assertEqual(with_arena[0], pickle.dumps(messages[0], 5))
        # Three ways, and all of a message in each that it takes.
        self.assertEqual(with_arena[6:9], [
            b"", [with_arena[7][0], pattern(3 * MIB)], with_arena[7]])

    def test_an_arena_without_readers_is_as_none(self):
        writer = arena(seats=1)
        messages = MessageQueue(1, 1, arena=writer)
        reader = MessageQueue.create_from_handle(messages.export_handle(), 0)
        tensorarena.detach(writer.handle)
        messages.wait_until_ready(HANG_S)
        await_true(lambda: not writer.stats()["readers"])
        messages.enqueue([1, 2])
        self.assertEqual(reader.dequeue(HANG_S), [1, 2])


class Forked(Case):
    def test_a_call_that_another_thread_is_in_does_not_hang_the_child(self):
        made, reader, thread = reader_in_a_call()
        pid = os.fork()
        if not pid:
            signal.alarm(int(HANG_S))
            try:
                reader.dequeue(HANG_S)
            except tensorarena.WrongProcess:
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        made.enqueue(1)
        thread.join()

    def test_in_a_child_the_ends_are_dead_and_harmless(self):
        made = MessageQueue(1, 1)
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        made.wait_until_ready(HANG_S)
        pid = os.fork()
        if not pid:
            status = 0
            for call in (lambda: made.enqueue(1), reader.dequeue,
                         made.wait_until_ready, made.shutdown,
                         reader.shutdown):
                try:
                    call()
                    status = 1
                except tensorarena.WrongProcess:
                    pass
            del made, reader, call
            os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        made.enqueue(Large(pattern(MIB)))
        self.assertEqual(reader.dequeue(HANG_S), Large(pattern(MIB)))


if __name__ == "__main__":
    main()
