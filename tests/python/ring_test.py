#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The ring of a message queue."""

import errno
import mmap
import os
import signal
import threading
import time

from harness import HANG_S, Case, Worker, await_true, main, pattern
import tensorarena
from tensorarena.queue.ring import _NEWS, RingReader, RingWriter, ShutDown, \
    deadline_of


def soon():
    return deadline_of(HANG_S)


def now():
    return deadline_of(0)


def take(ring):
    data = bytes(ring.get(soon()))
    ring.done()
    return data


def send(ring, data):
    ring.reserve(soon())
    ring.put(data)


# What workers do.

def attach(state, handle, reader=0):
    state.ring = RingReader(handle, reader)


def take_all(state, number):
    return [take(state.ring) for _ in range(number)]


def look(state):
    return bytes(state.ring.get(soon()))


def take_or_why(state):
    try:
        return take(state.ring)
    except Exception as error:
        return type(error).__name__


def fork_a_child(state):
    """One that outlives this process, until its standard input ends."""
    ours, theirs = os.pipe()
    if not os.fork():
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    state.child = theirs


def create(state, readers, chunk_bytes, chunks):
    state.ring = RingWriter(readers, chunk_bytes, chunks)
    return state.ring.handle


def put(state, *messages):
    for message in messages:
        send(state.ring, message)


def stop(state):
    state.ring.stop()
    state.ring.leave()


class Messages(Case):
    def test_each_reader_gets_all_in_order_round_and_round(self):
        for method in ("spawn", "fork"):
            writer = RingWriter(2, 5000, 3)
            messages = [pattern(n * 613 % 5001, n) for n in range(40)]
            with Worker(method) as one, Worker(method) as two:
                for reader, worker in enumerate((one, two)):
                    worker.call(attach, writer.handle, reader)
                    worker.start(take_all, len(messages))
                for message in messages:
                    send(writer, message)
                self.assertEqual(one.result(), messages)
                self.assertEqual(two.result(), messages)

    def test_counts_may_begin_anew(self):
        writer = RingWriter(1, 8, 3)
        reader = RingReader(writer.handle, 0)
        last = 2 ** 32 - 4
        for end in writer, reader:
            end._count = last - 1
        writer._free_until = last
        writer._counted(_NEWS)
        reader.done()
        for n in range(10):
            send(writer, b"%d" % n)
            if n >= 2:
                with self.assertRaises(TimeoutError):
                    writer._free_until = 0
                    writer.reserve(now())
                self.assertEqual(take(reader), b"%d" % (n - 2))
        self.assertGreater(writer._count, 2 ** 32)

    def test_the_largest_and_the_smallest_message(self):
        writer = RingWriter(1, mmap.PAGESIZE, 2)
        reader = RingReader(writer.handle, 0)
        for nbytes in (0, mmap.PAGESIZE, 1, mmap.PAGESIZE):
            message = pattern(nbytes)
            send(writer, message)
            self.assertEqual(take(reader), message)

    def test_it_is_full_when_one_reader_lags(self):
        writer = RingWriter(2, 8, 2)
        quick, slow = (RingReader(writer.handle, n) for n in range(2))
        for n in range(2):
            send(writer, b"x")
            take(quick)
        self.assertRaises(TimeoutError, writer.reserve, deadline_of(0.01))
        take(slow)
        writer.reserve(now())

    def test_it_is_empty_until_something_is_put(self):
        writer = RingWriter(1, 8, 2)
        reader = RingReader(writer.handle, 0)
        self.assertRaises(TimeoutError, reader.get, deadline_of(0.01))
        writer.put(b"x")
        self.assertEqual(bytes(reader.get(now())), b"x")
        # Until it is done with it.
        self.assertEqual(bytes(reader.get(now())), b"x")
        reader.done()
        self.assertRaises(TimeoutError, reader.get, now())

    def test_a_wait_can_be_cancelled(self):
        writer = RingWriter(1, 8, 2)
        reader = RingReader(writer.handle, 0)
        cancel = threading.Event()
        timer = threading.Timer(0.02, cancel.set)
        timer.start()
        self.assertRaises(ShutDown, reader.get, soon(), cancel)
        timer.join()
        writer.put(b"x")
        self.assertEqual(bytes(reader.get(soon(), cancel)), b"x")


class Coming(Case):
    def test_writer_and_readers_wait_for_each_other(self):
        writer = RingWriter(2, 8, 2)
        one = RingReader(writer.handle, 0)
        self.assertRaises(TimeoutError, writer.wait_for_readers, now())
        self.assertRaises(TimeoutError, one.wait_for_writer, now())
        two = RingReader(writer.handle, 1)
        writer.wait_for_readers(soon())
        self.assertEqual(writer.present(), 2)
        writer.welcome()
        for reader in one, two:
            reader.wait_for_writer(now())

    def test_a_writer_that_has_been_here_and_gone_was_here(self):
        writer = RingWriter(1, 8, 2)
        reader = RingReader(writer.handle, 0)
        writer.wait_for_readers(now())
        writer.welcome()
        writer.put(b"last")
        writer.stop()
        writer.leave()
        reader.wait_for_writer(soon())
        self.assertEqual(bytes(reader.get(soon())), b"last")

    def test_a_welcome_after_the_end_is_none(self):
        writer = RingWriter(2, 8, 2)
        one, late = (RingReader(writer.handle, n) for n in range(2))
        writer.wait_for_readers(now())
        writer.stop()
        # What the thread does that had just seen all readers come.
        writer.welcome()
        self.assertRaises(ShutDown, writer.check)
        self.assertRaises(ShutDown, one.wait_for_writer, soon())
        writer.leave()
        self.assertRaises(ShutDown, one.get, soon())
        self.assertRaises(ShutDown, late.wait_for_writer, soon())

    def test_a_place_is_taken_once(self):
        writer = RingWriter(1, 8, 2)
        reader = RingReader(writer.handle, 0)
        with self.assertRaisesRegex(ValueError, "such a reader already"):
            RingReader(writer.handle, 0)
        reader.stop()
        reader.leave()
        with self.assertRaisesRegex(ValueError, "such a reader before"):
            RingReader(writer.handle, 0)

    def test_a_ring_has_readers_and_room(self):
        for sizes in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
            self.assertRaises(ValueError, RingWriter, *sizes)

    def test_other_memory_is_not_taken_for_it(self):
        writer, other = RingWriter(1, 8, 2), RingWriter(1, 8, 2)
        small = os.memfd_create("small")
        handle = writer.handle
        for path in (other.handle.path, f"/proc/self/fd/{small}",
                     "/proc/self/fd/987654"):
            with self.assertRaises(tensorarena.WriterGone) as caught:
                RingReader(handle._replace(path=path), 0)
            self.assertEqual(caught.exception.errno, errno.EPIPE)
        os.close(small)
        del writer
        with self.assertRaises(tensorarena.WriterGone):
            RingReader(handle, 0)

    def test_nobody_can_make_the_memory_smaller(self):
        writer = RingWriter(1, 8, 2)
        with open(writer.handle.path, "r+b") as file:
            self.assertRaises(PermissionError, file.truncate, 1)


class Going(Case):
    def test_a_reader_killed_while_holding_a_message_is_not_waited_for(self):
        writer = RingWriter(2, 8, 1)
        own = RingReader(writer.handle, 0)
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle, 1)
            send(writer, b"1")
            self.assertEqual(worker.call(look), b"1")
            self.assertEqual(take(own), b"1")
            self.assertRaises(TimeoutError, writer.reserve, deadline_of(0.2))
            worker.kill()
            send(writer, b"2")
            self.assertEqual(take(own), b"2")
            self.assertEqual(writer.readers, 1)

    def test_its_forked_child_does_not_stand_for_it(self):
        writer = RingWriter(1, 8, 1)
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            worker.call(fork_a_child)
            send(writer, b"1")
            worker.kill()
            send(writer, b"2")
            self.assertEqual(writer.readers, 0)

    def test_a_reader_that_is_merely_slow_or_late_is_waited_for(self):
        writer = RingWriter(1, 8, 1)
        writer.put(b"1")
        self.assertRaises(TimeoutError, writer.reserve, deadline_of(0.2))
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            os.kill(worker.process.pid, signal.SIGSTOP)
            self.assertRaises(TimeoutError, writer.reserve, deadline_of(0.2))
            os.kill(worker.process.pid, signal.SIGCONT)
            worker.start(take_all, 1)
            send(writer, b"2")
            self.assertEqual(worker.result(), [b"1"])

    def test_a_reader_that_stops_is_not_waited_for(self):
        writer = RingWriter(1, 8, 1)
        reader = RingReader(writer.handle, 0)
        writer.put(b"1")
        waiting = threading.Thread(target=send, args=(writer, b"2"))
        waiting.start()
        reader.stop()
        waiting.join(HANG_S)
        self.assertEqual(writer.readers, 0)
        self.assertRaises(ShutDown, reader.check)

    def check_woken(self, end, wait):
        """An end that stops ends what another thread waits for."""
        failed = []

        def run():
            try:
                wait(None)
            except ShutDown:
                failed.append(True)

        thread = threading.Thread(target=run)
        thread.start()
        end.stop()
        thread.join(HANG_S)
        self.assertEqual(failed, [True])

    def test_a_reader_that_stops_wakes_its_own_thread(self):
        writer = RingWriter(1, 8, 1)
        reader = RingReader(writer.handle, 0)
        self.check_woken(reader, reader.get)

    def test_a_writer_that_stops_is_heard_out(self):
        for method in ("spawn", "fork"):
            writer = RingWriter(1, 8, 4)
            with Worker(method) as worker:
                worker.call(attach, writer.handle)
                for message in b"1", b"2":
                    send(writer, message)
                stop(type("State", (), {"ring": writer}))
                self.assertEqual([worker.call(take_or_why) for _ in range(4)],
                                 [b"1", b"2", "ShutDown", "ShutDown"])
            self.assertRaises(ShutDown, writer.check)

    def test_what_a_writer_puts_last_is_never_missed(self):
        for _ in range(200):
            writer = RingWriter(1, 8, 1)
            reader = RingReader(writer.handle, 0)

            def run():
                writer.put(b"last")
                writer.stop()
                writer.leave()

            thread = threading.Thread(target=run)
            thread.start()
            self.assertEqual(take(reader), b"last")
            self.assertRaises(ShutDown, reader.get, soon())
            thread.join()

    def test_a_writer_that_stops_wakes_its_own_thread(self):
        writer = RingWriter(1, 8, 1)
        writer.put(b"1")
        self.check_woken(writer, writer.reserve)

    def test_a_writer_that_was_killed_is_heard_out_too(self):
        with Worker("spawn") as engine, Worker("spawn") as worker:
            handle = engine.call(create, 1, 8, 4)
            worker.call(attach, handle)
            engine.call(put, b"1")
            engine.call(fork_a_child)
            self.assertEqual(worker.call(take_or_why), b"1")
            worker.start(take_or_why)
            time.sleep(0.05)
            engine.kill()
            self.assertEqual(worker.result(), "WriterGone")

    def test_who_waits_for_a_writer_that_was_killed_is_told(self):
        with Worker("spawn") as engine:
            reader = RingReader(engine.call(create, 2, 8, 4), 0)
            engine.kill()
            with self.assertRaises(tensorarena.WriterGone):
                reader.wait_for_writer(soon())


class Forked(Case):
    def test_in_a_child_the_ends_are_dead(self):
        writer = RingWriter(1, 8, 1)
        reader = RingReader(writer.handle, 0)
        pid = os.fork()
        if not pid:
            status = 0
            for end in writer, reader:
                try:
                    end.check()
                    status = 1
                except tensorarena.WrongProcess:
                    pass
            os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        send(writer, b"x")
        self.assertEqual(take(reader), b"x")

    def test_descriptors_go_with_the_ends(self):
        before = os.listdir("/proc/self/fd")
        writer = RingWriter(1, 8, 1)
        reader = RingReader(writer.handle, 0)
        self.assertNotEqual(os.listdir("/proc/self/fd"), before)
        del reader, writer
        await_true(lambda: os.listdir("/proc/self/fd") == before)


if __name__ == "__main__":
    main()
