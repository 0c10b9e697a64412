#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Who keeps a slot, and until when.  No NumPy, no PyTorch: see tensors_test."""

import gc
import io
import os
import pickle
import signal
import sys
import threading
import time

import harness
from harness import HANG_S, MIB, Case, Worker, arena, await_free, \
    await_true, main, pair, pattern, published, run_case
import tensorarena
from tensorarena import _arena
from tensorarena.pickling import ArenaPickler


def message_of(writer, data, **others):
    """A pickled message with data in the arena."""
    loan = writer.loan(len(data))
    loan.write(data)
    file = io.BytesIO()
    pickler = ArenaPickler(file, writer)
    pickler.dump({"data": loan, **others})
    assert pickler.commit()
    return file.getvalue()


# What workers do.

def attach(state, handle):
    state.reader = tensorarena.Reader(handle)


def hold(state, message):
    state.held = pickle.loads(message)
    return bytes(state.held["data"])


def hold_for_good(state, message):
    """Where only the end of the interpreter lets go of it."""
    sys.modules["held"] = pickle.loads(message)


def look(state):
    return bytes(state.held["data"])


def drop(state):
    del state.held


def attach_and_view(state, handle, ticket):
    attach(state, handle)
    state.view = state.reader.view(ticket)


def next_fails_with(state):
    try:
        state.reader.next()
    except tensorarena.Error as error:
        return type(error).__name__


class Holding(Case):
    def test_retained_across_a_thousand_dequeues(self):
        writer, reader = pair(slots=2)
        kept = pickle.loads(message_of(writer, pattern(MIB, 1)))["data"]
        for seed in range(1000):
            data = pattern(4096, seed)
            seen = pickle.loads(message_of(writer, data))["data"]
            self.assertEqual(bytes(seen), data)
            del seen
            reader.flush_releases()
        self.assertEqual(bytes(kept), pattern(MIB, 1))
        self.assertEqual(published(writer), 1)
        del kept
        await_free(writer)

    def test_retained_only_through_a_memoryview(self):
        writer, reader = pair()
        view = reader.view(writer.put(pattern(MIB)))
        memory = memoryview(view)
        del view
        gc.collect()
        self.assertEqual(published(writer), 1)
        part = memory[5:10]
        del memory
        self.assertEqual(published(writer), 1)
        self.assertEqual(bytes(part), pattern(MIB)[5:10])
        part.release()
        await_free(writer)

    def test_retained_after_the_reader_is_closed_or_forgotten(self):
        writer, reader = pair()
        view = reader.view(writer.put(pattern(MIB)))
        reader.close()
        self.assertEqual(bytes(view), pattern(MIB))
        self.assertEqual(published(writer), 1)
        self.assertEqual(writer.stats()["detached"], 0)
        del view
        await_free(writer)
        await_true(lambda: writer.stats()["detached"] == 1)

    def test_closed_under_the_feet_of_busy_threads(self):
        def work():
            while True:
                try:
                    ticket = writer.put(b"bytes")
                    loan = writer.loan(3)
                    view = ticket and reader.view(ticket)
                    assert not view or bytes(memoryview(view)) == b"bytes"
                    assert not loan or not loan.committed
                    writer.stats(), reader.stats(), reader.next(0)
                    del view, loan
                except tensorarena.Error:
                    return

        for _ in range(30):
            writer, reader = pair(slots=8)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            writer.stats()
            reader.close()
            writer.close()
            for thread in threads:
                thread.join()

    def test_released_on_another_thread(self):
        writer, reader = pair()
        held = [reader.view(writer.put(b"x"))]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        await_free(writer)

    def test_released_while_no_thread_of_the_reader_calls(self):
        writer = arena()
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            worker.call(hold, message_of(writer, b"x"))
            worker.call(drop)
            # It waits for the next command now, outside of the package.
            await_free(writer)

    def test_a_cycle_is_collected_by_gc(self):
        writer, reader = pair()
        gc.disable()
        try:
            cycle = [memoryview(reader.view(writer.put(b"x")))]
            cycle.append(cycle)
            del cycle
            reader.flush_releases()
            self.assertEqual(published(writer), 1)
            gc.collect()
            await_free(writer)
        finally:
            gc.enable()

    def test_an_exception_between_unpickling_and_use_leaks_nothing(self):
        writer, _ = pair()
        message = message_of(writer, b"x", bad=_Bomb())
        with self.assertRaises(ZeroDivisionError):
            pickle.loads(message)
        await_free(writer)

        def use():
            seen = pickle.loads(message_of(writer, b"y"))
            raise KeyError(len(seen))

        with self.assertRaises(KeyError):
            use()
        gc.collect()
        await_free(writer)

    def test_a_stub_unpickled_twice_is_one_publication(self):
        writer, reader = pair()
        message = message_of(writer, pattern(MIB))
        first, second = (pickle.loads(message)["data"] for _ in "ab")
        self.assertEqual(first.address, second.address)
        self.assertEqual(reader.stats()["views"], 1)
        del first
        reader.flush_releases()
        self.assertEqual(bytes(second), pattern(MIB))
        self.assertEqual(published(writer), 1)
        del second
        await_free(writer)

    def test_a_stub_kept_past_reuse_is_stale(self):
        writer, reader = pair(slots=1)
        message = message_of(writer, b"first")
        pickle.loads(message)
        reader.flush_releases()
        with self.assertRaises(tensorarena.StaleTicket):
            pickle.loads(message)
        other = pickle.loads(message_of(writer, b"second"))
        with self.assertRaises(tensorarena.StaleTicket):
            pickle.loads(message)
        self.assertEqual(bytes(other["data"]), b"second")


class _Bomb:
    def __reduce__(self):
        return divmod, (1, 0)


class Processes(Case):
    def test_a_stub_unpickled_in_a_process_that_never_attached(self):
        for method in ("spawn", "fork"):
            with self.subTest(method):
                writer = arena(slots=1)
                with Worker(method) as worker:
                    for seed in range(3):
                        data = pattern(4096, seed)
                        message = message_of(writer, data)
                        self.assertEqual(worker.call(hold, message), data)
                        self.assertEqual(writer.stats()["attached"], 1)
                        worker.call(drop)
                        await_free(writer)

    def test_a_stub_that_cannot_be_attached_says_so(self):
        writer = arena()
        message = message_of(writer, b"x")
        writer.close()
        with Worker("spawn") as worker:
            with self.assertRaisesRegex(tensorarena.Error,
                                        "cannot attach") as caught:
                worker.call(hold, message)
            self.assertTrue(caught.exception.errno)
            self.assertNotIn(writer.handle, str(caught.exception))

    def test_released_at_interpreter_exit(self):
        writer = arena()
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            worker.call(hold_for_good, message_of(writer, b"x"))
            self.assertEqual(published(writer), 1)
            self.assertEqual(worker.end(), 0)
        await_free(writer)
        self.assertEqual(writer.stats()["readers"], [])

    def test_interpreter_exit_is_clean_with_everything_still_alive(self):
        self.assertEqual(run_case("exit_case.py"), (0, b"alive\n"))

    def test_a_worker_killed_while_holding_is_reclaimed(self):
        writer = arena()
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            worker.call(hold, message_of(writer, b"x"))
            worker.kill()
        await_free(writer)
        self.assertEqual(writer.stats()["reclaimed_dead_readers"], 1)

    def test_an_engine_killed_leaves_what_is_held(self):
        with Worker("spawn") as engine, Worker("spawn") as worker:
            handle = engine.call(make_arena, harness.ENGINE)
            worker.call(attach, handle)
            message = engine.call(make_message, pattern(MIB))
            worker.call(hold, message)
            engine.kill()
            self.assertEqual(worker.call(next_fails_with), "WriterGone")
            self.assertEqual(worker.call(look), pattern(MIB))
            worker.call(drop)


def make_arena(state, engine):
    state.writer = tensorarena.Writer(2, 2 * MIB, 1, engine=engine)
    return state.writer.handle


def make_message(state, data):
    return message_of(state.writer, data)


def put(state):
    return state.writer.put(b"bytes")


def published_there(state):
    return published(state.writer)


def readers_there(state):
    return len(state.writer.stats()["readers"])


def forget(state):
    vars(state).clear()


def go_on_at_last(_, pid):
    time.sleep(HANG_S)
    os.kill(pid, signal.SIGCONT)


class Stopped:
    """While it is in effect the process of a worker is stopped.

    It is for HANG_S at most, so that what waits for it comes to an end.
    """

    def __init__(self, worker):
        self.pid = worker.process.pid

    def __enter__(self):
        self.waker = Worker("spawn")
        self.waker.start(go_on_at_last, self.pid)
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)
        self.waker.kill()

    def lasts(self):
        return not self.waker.pipe.poll()


class StoppedWriters(Case):
    def test_a_view_of_a_stopped_writers_delays_no_other_arena(self):
        with Worker("spawn") as stopped, Worker("spawn") as other:
            far = tensorarena.Reader(stopped.call(make_arena, harness.ENGINE))
            reader = tensorarena.Reader(other.call(make_arena, harness.ENGINE))
            own_writer, own_reader = pair()
            view = far.view(stopped.call(put))
            held = reader.view(other.call(put))
            with Stopped(stopped) as stop:
                del view
                seen = reader.view(other.call(put))
                self.assertEqual(bytes(seen), b"bytes")
                self.assertEqual(reader.flush_releases(), 0)
                self.assertEqual(own_writer.loan(1).nbytes, 1)
                own = own_reader.view(own_writer.put(b"own"))
                self.assertEqual(bytes(own), b"own")
                # Nobody calls, and the reaper is at the first one.
                del held, seen
                await_true(lambda: other.call(published_there) == 0)
                self.assertTrue(stop.lasts())
            await_true(lambda: stopped.call(published_there) == 0)

    def test_what_dies_with_a_view_of_a_stopped_writers_is_not_delayed(self):
        with Worker("spawn") as stopped, Worker("spawn") as other:
            far = tensorarena.Reader(stopped.call(make_arena, harness.ENGINE))
            reader = tensorarena.Reader(other.call(make_arena, harness.ENGINE))
            # All threads that the reaper has by now are asleep.
            views = [far.view(stopped.call(put)),
                     reader.view(other.call(put))]
            views.clear()
            await_true(lambda: other.call(published_there) == 0)
            await_true(lambda: stopped.call(published_there) == 0)
            time.sleep(0.1)
            views = [far.view(stopped.call(put)),
                     reader.view(other.call(put))]
            with Stopped(stopped) as stop:
                views.clear()
                await_true(lambda: other.call(published_there) == 0)
                self.assertTrue(stop.lasts())
            await_true(lambda: stopped.call(published_there) == 0)

    def test_whoever_drops_a_reader_of_a_stopped_writers_goes_on(self):
        for views in (0, 1):
            with self.subTest(views=views), Worker("spawn") as stopped, \
                    Worker("spawn") as other, Worker("spawn") as worker:
                handle = stopped.call(make_arena, harness.ENGINE)
                if views:
                    worker.call(attach_and_view, handle, stopped.call(put))
                else:
                    worker.call(attach, handle)
                handle = other.call(make_arena, harness.ENGINE)
                with Stopped(stopped) as stop:
                    worker.call(forget)
                    worker.call(attach_and_view, handle, other.call(put))
                    worker.call(forget)
                    await_true(lambda: other.call(readers_there) == 0)
                    self.assertTrue(stop.lasts())
                await_true(lambda: stopped.call(readers_there) == 0)

    def test_whoever_closes_a_reader_of_a_stopped_writers_waits_alone(self):
        with Worker("spawn") as stopped:
            far = tensorarena.Reader(stopped.call(make_arena, harness.ENGINE))
            thread = threading.Thread(target=far.close)
            with Stopped(stopped) as stop:
                thread.start()
                writer, reader = pair()
                view = reader.view(writer.put(b"own"))
                self.assertEqual(bytes(view), b"own")
                self.assertTrue(stop.lasts())
            thread.join()
            self.assertEqual(stopped.call(readers_there), 0)

    def test_whoever_attaches_waits_for_no_other_writer(self):
        with Worker("spawn") as stopped, Worker("spawn") as never, \
                Worker("spawn") as other:
            handle, new = (worker.call(make_arena, harness.ENGINE)
                           for worker in (stopped, never))
            kept = tensorarena.attach(handle)
            # Something that has not been seen, or the writer's end.
            stopped.call(put)
            seats = []
            thread = threading.Thread(
                target=lambda: seats.append(tensorarena.attach(new).seat))
            with Stopped(stopped) as stop:
                with Stopped(never):
                    thread.start()
                    # The kernel answers for a writer that is stopped.
                    await_true(lambda: new in _arena._attaching or seats)
                    reader = tensorarena.attach(
                        other.call(make_arena, harness.ENGINE))
                    view = reader.view(other.call(put))
                    self.assertEqual(bytes(view), b"bytes")
                # It has not given up in the meantime.
                thread.join()
                self.assertEqual(seats, [0])
                self.assertFalse(kept.writer_gone())
                self.assertTrue(stop.lasts())
            stopped.kill()
            await_true(kept.writer_gone)
            for each in (handle, new, reader.handle):
                tensorarena.detach(each)


class Loans(Case):
    def test_a_loan_is_filled_in_place_and_published(self):
        writer, reader = pair()
        with writer.loan(6, "u16", (3,), tag=b"t") as loan:
            memoryview(loan).cast("B")[:] = b"abcdef"
            self.assertFalse(loan.committed or loan.readonly)
            foretold = loan.ticket
            ticket = loan.commit()
            self.assertTrue(loan.committed)
        self.assertEqual(ticket, foretold)
        view = reader.view(ticket)
        self.assertEqual((bytes(view), view.dtype, view.shape, view.tag),
                         (b"abcdef", "u16", (3,), b"t"))

    def test_a_part_of_a_loan_is_published_as_bytes_or_as_told(self):
        writer, reader = pair()
        for arguments, seen in (((3,), ("u8", (3,), b"abc")),
                                ((4, "u16"), ("u16", (2,), b"abcd")),
                                ((None, "u8", (2, 3)),
                                 ("u8", (2, 3), b"abcdef"))):
            loan = writer.loan(6, "u16", (3,))
            loan.write(b"abcdef")
            with reader.view(loan.commit(*arguments)) as view:
                self.assertEqual((view.dtype, view.shape, bytes(view)), seen)
        loan = writer.loan(6)
        for bad in ((7,), (-1,), (5, "u16"), (None, "u8", (5,))):
            with self.assertRaises((ValueError, OverflowError)):
                loan.commit(*bad)
        self.assertFalse(loan.committed)

    def test_writes_stay_inside_a_loan(self):
        writer, _ = pair()
        loan = writer.loan(6)
        for offset in (-1, 3, 2**62):
            with self.assertRaises(ValueError):
                loan.write(b"abcd", offset)
            with self.assertRaises(ValueError):
                loan.write_address(loan.address, 4, offset)
        loan.write(b"", 6)
        loan.write(b"abcd", 2)
        self.assertEqual(bytes(loan)[2:], b"abcd")

    def test_a_loan_that_goes_uncommitted_frees_its_slot(self):
        writer, reader = pair(slots=1)
        for end in (lambda loan: loan.abort(), lambda loan: loan.__exit__(),
                    lambda loan: None):
            loan = writer.loan(1)
            self.assertIsNone(writer.put(b"x"))
            end(loan)
            del loan
            self.assertIsNotNone(writer.put(b"x"))
            reader.next(0).release()
            reader.flush_releases()
        self.assertEqual(writer.stats()["aborted"], 3)

    def test_an_aborted_loan_waits_for_what_shares_it(self):
        writer, _ = pair(slots=1)
        loan = writer.loan(1)
        memory = memoryview(loan)
        loan.abort()
        self.assertIsNone(writer.put(b"x"))
        memory[0] = 1
        del memory
        self.assertIsNotNone(writer.put(b"x"))

    def test_a_slot_is_not_used_while_old_memory_of_it_can_be_reached(self):
        writer, reader = pair(slots=2)
        loan = writer.loan(4)
        address = loan.address
        old = memoryview(loan)
        old[:] = b"old!"
        reader.view(loan.commit()).release()
        reader.flush_releases()
        slots = set()
        for seed in range(4):
            ticket = writer.put(pattern(4, seed))
            slots.add(ticket.slot)
            reader.view(ticket).release()
            reader.flush_releases()
        self.assertEqual(len(slots), 1)
        self.assertEqual(bytes(old), b"old!")
        with self.assertRaises(tensorarena.Error):
            writer.trim()
        with self.assertRaises(tensorarena.StaleTicket):
            writer.loan_at(address)
        del old
        first, second = writer.put(b"1"), writer.put(b"2")
        self.assertNotEqual(first.slot, second.slot)
        self.assertEqual(writer.stats()["writing"], 0)

    def test_a_committed_loan_cannot_be_written_or_committed_again(self):
        writer, _ = pair()
        loan = writer.loan(1)
        again = writer.loan_at(loan.address)
        loan.commit()
        for use in (loan.commit, again.commit, lambda: loan.write(b"x"),
                    lambda: again.write(b"x")):
            with self.assertRaises((ValueError, tensorarena.StaleTicket)):
                use()
        loan.abort()
        again.abort()
        self.assertEqual(published(writer), 1)

    def test_of_two_commits_at_once_one_finds_the_loan_gone(self):
        writer, reader = pair()
        loan = writer.loan(1)
        again = writer.loan_at(loan.address)

        class Readers(list):
            def __iter__(self):
                again.commit()
                return super().__iter__()

        with self.assertRaises(tensorarena.StaleTicket):
            loan.commit(readers=Readers([reader.id]))
        self.assertEqual(writer.stats()["puts"], 1)

    def test_a_loan_given_up_while_its_commit_reads_arguments_is_gone(self):
        writer, reader = pair(slots=1)
        for name, values in (("shape", [4]), ("readers", [reader.id])):
            with self.subTest(name):
                loan = writer.loan(4, tag=b"tag")

                class GivesUp(list):
                    def __iter__(self):
                        loan.abort()
                        # Frees what nothing shares.
                        writer.stats()
                        return super().__iter__()

                with self.assertRaisesRegex(ValueError, "given up"):
                    loan.commit(4, **{name: GivesUp(values)})
                self.assertFalse(loan.committed)
                stats = writer.stats()
                self.assertEqual((stats["free"], stats["puts"]), (1, 0))

    def test_a_loan_whose_commit_reads_bad_arguments_stays(self):
        writer, _ = pair()
        loan = writer.loan(4)
        for bad in ({"shape": [3]}, {"readers": ["x"]}, {"tag": bytes(10000)}):
            with self.assertRaises((ValueError, TypeError)):
                loan.commit(**bad)
        loan.write(b"good")
        self.assertIsNotNone(loan.commit())

    def test_a_commit_to_nobody_is_a_decline(self):
        writer, reader = pair(slots=1)
        loan = writer.loan(1)
        reader.close()
        self.assertIsNone(loan.commit())
        self.assertEqual(writer.last_decline, "no_reader")
        self.assertEqual(writer.stats()["free"], 1)

    def test_a_writer_closed_early_stays_until_its_loans_are_gone(self):
        writer, reader = pair()
        memory = memoryview(writer.loan(4))
        writer.close()
        self.assertIsNone(reader.next(0.02))
        memory[:] = b"safe"
        del memory
        with self.assertRaises(tensorarena.WriterGone):
            reader.next(harness.HANG_S)

    def test_trim_and_populate(self):
        writer, reader = pair(slots=2)
        writer.populate(2, 2 * MIB)
        self.assertEqual(writer.stats()["allocated_bytes"], 4 * MIB)
        self.assertEqual(writer.trim(2 * MIB), 2 * MIB)
        self.assertEqual(writer.trim(), 2 * MIB)
        with self.assertRaises(tensorarena.Error):
            writer.populate(3, 1)
        with self.assertRaises(tensorarena.Error):
            writer.populate(-1, 1)
        with self.assertRaises(OverflowError):
            writer.trim(-1)


if __name__ == "__main__":
    main()
