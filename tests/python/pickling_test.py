#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Messages whose parts are on loan: what is published when, and what is taken
back.  No NumPy, no PyTorch: see tensors_test."""

import array
import copyreg
import io
import pickle
import threading

from harness import Case, Worker, arena, await_free, await_true, main, pair, \
    pattern, published
import tensorarena
from tensorarena.pickling import ArenaPickler


class _Bad:
    def __reduce__(self):
        raise RuntimeError("cannot be pickled")


def on_loan(writer, data):
    loan = writer.loan(len(data))
    loan.write(data)
    return loan


def pickled(writer, message, **options):
    file = io.BytesIO()
    pickler = ArenaPickler(file, writer, **options)
    pickler.dump(message)
    return pickler, file


class Publishing(Case):
    def test_nothing_is_published_before_commit(self):
        writer, reader = pair()
        pickler, file = pickled(writer, [on_loan(writer, b"data")])
        self.assertEqual(published(writer), 0)
        ticket, = pickler.tickets
        with self.assertRaises(tensorarena.StaleTicket):
            pickle.loads(file.getvalue())
        self.assertTrue(pickler.commit())
        self.assertEqual(pickler.tickets, [ticket])
        view, = pickle.loads(file.getvalue())
        self.assertEqual((bytes(view), view.ticket), (b"data", ticket))

    def test_the_same_object_twice_is_one_publication(self):
        writer, _ = pair()
        loan = on_loan(writer, b"data")
        pickler, file = pickled(writer, {"a": loan, "b": [loan]})
        pickler.commit()
        self.assertEqual(published(writer), 1)
        message = pickle.loads(file.getvalue())
        self.assertIs(message["a"], message["b"][0])

    def test_a_pickling_error_rolls_the_slots_back(self):
        writer, _ = pair(slots=2)
        with self.assertRaisesRegex(RuntimeError, "cannot be pickled"):
            pickled(writer, [on_loan(writer, b"data"), _Bad()])
        self.assertEqual(writer.stats()["free"], 2)

    def test_a_failed_send_before_commit_rolls_the_slots_back(self):
        writer, _ = pair(slots=2)
        pickler, _ = pickled(writer, [on_loan(writer, b"1"),
                                      on_loan(writer, b"2")])
        pickler.rollback()
        self.assertEqual(writer.stats()["free"], 2)
        self.assertEqual(pickler.tickets, [])
        pickler.rollback()

    def test_a_pickler_that_is_dropped_rolls_the_slots_back(self):
        writer, _ = pair(slots=2)
        pickler, _ = pickled(writer, [on_loan(writer, b"1")])
        del pickler
        self.assertEqual(writer.stats()["free"], 2)

    def test_a_failed_send_after_commit_rolls_the_slots_back(self):
        writer, reader = pair(slots=2)
        pickler, file = pickled(writer, [on_loan(writer, b"1"),
                                         on_loan(writer, b"2")])
        pickler.commit()
        self.assertEqual(published(writer), 2)
        pickler.rollback()
        self.assertEqual(pickler.tickets, [])
        self.assertEqual(writer.stats()["free"], 2)
        self.assertEqual(writer.stats()["retracted"], 2)
        with self.assertRaises(tensorarena.StaleTicket):
            pickle.loads(file.getvalue())
        self.assertIsNone(reader.next(timeout=0))
        pickler.rollback()

    def test_what_is_called_back_is_not_taken_from_who_got_it(self):
        writer = arena(seats=2)
        first, second = Worker("spawn"), Worker("spawn")
        with first, second:
            for worker in first, second:
                worker.call(attach, writer.handle)
            pickler, file = pickled(writer, [on_loan(writer, pattern(100))])
            pickler.commit()
            # The send reached one of them before it failed.
            first.call(hold, file.getvalue())
            pickler.rollback()
            self.assertEqual([row["pending"] for row in
                              writer.stats()["readers"]].count(1), 1)
            self.assertEqual(first.call(held), pattern(100))
            with self.assertRaises(tensorarena.StaleTicket):
                second.call(unpickle, file.getvalue())
            first.call(drop)
            await_free(writer)

    def test_retract_says_who_keeps_it(self):
        writer, reader = pair(slots=2)
        seen, unseen = writer.put(b"seen"), writer.put(b"unseen")
        view = reader.view(seen)
        self.assertEqual(writer.retract(seen), 1)
        self.assertEqual(writer.retract(unseen), 0)
        self.assertEqual(bytes(view), b"seen")
        view.release()
        reader.flush_releases()
        await_free(writer)
        for ticket in seen, unseen, tensorarena.Ticket(1, 2, 3, 4):
            with self.assertRaises(tensorarena.StaleTicket):
                writer.retract(ticket)
        with self.assertRaises(TypeError):
            writer.retract(1)

    def test_one_pickler_makes_many_messages(self):
        writer, reader = pair(slots=2)
        file = io.BytesIO()
        pickler = ArenaPickler(file, writer)
        seen = []
        for n in range(3):
            file.seek(0)
            file.truncate()
            pickler.dump([n, on_loan(writer, b"%d" % n), on_loan(writer, b"x")])
            self.assertTrue(pickler.used)
            self.assertEqual(len(pickler.tickets), 2)
            if n == 1:
                # Not committed.
                pickler.begin()
            else:
                pickler.commit()
                pickler.begin()
                seen.append([bytes(v) if isinstance(v, tensorarena.View) else v
                             for v in pickle.loads(file.getvalue())])
                reader.flush_releases()
            self.assertEqual((pickler.used, pickler.tickets), (False, []))
            pickler.rollback()
            await_free(writer)
            self.assertEqual(writer.stats()["free"], 2)
        self.assertEqual(seen, [[0, b"0", b"x"], [2, b"2", b"x"]])

    def test_without_a_reader_a_commit_is_declined(self):
        writer, reader = pair(slots=2)
        pickler, _ = pickled(writer, [on_loan(writer, b"1"),
                                      on_loan(writer, b"2")])
        reader.close()
        self.assertFalse(pickler.commit())
        self.assertEqual(writer.stats()["free"], 2)
        self.assertEqual(writer.last_decline, "no_reader")

    def test_a_commit_that_fails_takes_back_what_it_had_published(self):
        writer = arena(slots=2, seats=2)
        first = tensorarena.Reader(writer.handle)
        second = tensorarena.Reader(writer.handle)
        loans = [on_loan(writer, b"1"), on_loan(writer, b"2")]
        pickler, _ = pickled(writer, loans, readers=[first.id, second.id])
        second.close()
        with self.assertRaises(tensorarena.StaleTicket):
            pickler.commit()
        self.assertEqual(pickler.tickets, [])
        del loans
        self.assertEqual(writer.stats()["writing"], 0)

    def test_a_message_for_some_readers_is_published_for_them(self):
        writer = arena(seats=2)
        first = tensorarena.Reader(writer.handle)
        second = tensorarena.Reader(writer.handle)
        pickler, _ = pickled(writer, on_loan(writer, b"1"),
                             readers=[second.id])
        pickler.commit()
        self.assertIsNone(first.next(0))
        self.assertEqual(bytes(second.next(0)), b"1")


class Composing(Case):
    def test_messages_without_large_parts_are_as_without_an_arena(self):
        writer, _ = pair()
        message = {"a": [1, 2.5, "x" * 1000, b"y" * 1000, None, complex(1, 2)],
                   "b": (Case, threading.Thread, range(5)), "c": {1, 2}}
        for protocol in (2, 4, 5):
            file = io.BytesIO()
            pickler = ArenaPickler(file, writer, protocol)
            pickler.dump(message)
            self.assertEqual(file.getvalue(), pickle.dumps(message, protocol))
            self.assertTrue(pickler.commit())

    def test_the_callers_dispatch_table_and_buffers_still_work(self):
        writer, _ = pair()
        table = copyreg.dispatch_table.copy()
        table[array.array] = lambda a: (bytearray, (pickle.PickleBuffer(a),))
        table[complex] = lambda c: (complex, ("1+1j",))
        buffers = []
        pickler, file = pickled(
            writer, [array.array("B", b"big"), complex(5), on_loan(writer, b"loan")],
            dispatch_table=table, buffer_callback=buffers.append)
        pickler.commit()
        self.assertEqual(len(buffers), 1)
        big, number, view = pickle.loads(file.getvalue(), buffers=buffers)
        self.assertEqual((big, number, bytes(view)),
                         (bytearray(b"big"), 1 + 1j, b"loan"))

    def test_a_pickler_leaves_no_cycle_behind(self):
        import gc
        import weakref

        writer, _ = pair()
        gc.disable()
        try:
            pickler, _ = pickled(writer, [on_loan(writer, b"x")])
            gone = weakref.ref(pickler)
            del pickler
            self.assertIsNone(gone())
        finally:
            gc.enable()

    def test_attached_arenas_are_known_weakly_and_by_handle(self):
        writer = arena(seats=2)
        reader = tensorarena.Reader(writer.handle)
        self.assertIs(tensorarena.attach(writer.handle), reader)
        reader.close()
        again = tensorarena.attach(writer.handle)
        self.assertIsNot(again, reader)
        self.assertIs(tensorarena.attach(writer.handle), again)
        number = writer.stats()["detached"]
        del reader, again
        self.assertEqual(writer.stats()["detached"], number)
        tensorarena.detach(writer.handle)
        await_true(lambda: writer.stats()["detached"] == number + 1)
        tensorarena.detach(writer.handle)

    def test_attaching_forgets_arenas_whose_writers_are_gone(self):
        from tensorarena import _arena

        old = arena()
        handle = old.handle
        tensorarena.attach(handle)
        old.close()
        new = arena()
        await_true(_arena._kept[handle].writer_gone)
        tensorarena.attach(new.handle)
        self.assertNotIn(handle, _arena._kept)
        tensorarena.detach(new.handle)

    def test_threads_that_unpickle_first_take_one_seat(self):
        writer = arena(seats=2)
        readers = []
        threads = [threading.Thread(
            target=lambda: readers.append(tensorarena.attach(writer.handle)))
            for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({reader.id for reader in readers}), 1)
        self.assertEqual(writer.stats()["attached"], 1)
        tensorarena.detach(writer.handle)


# What workers do.

def attach(state, handle):
    state.reader = tensorarena.Reader(handle)


def hold(state, message):
    state.held, = pickle.loads(message)


def held(state):
    return bytes(state.held)


def drop(state):
    del state.held


def unpickle(state, message):
    return pickle.loads(message)


if __name__ == "__main__":
    main()
