#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The extension by itself: no NumPy, no PyTorch, one process."""

import array
import errno
import os
import pickle
import select
import threading
import time
import weakref

from harness import ENGINE, MIB, Case, arena, await_free, await_true, main, \
    pair, pattern, published
import tensorarena
from tensorarena import _core


def copiers():
    """Threads of this process that copy for a writer."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                found += file.read() == "ta-copy\n"
        except OSError:
            pass  # it has ended
    return found


class Tickets(Case):
    TICKET = tensorarena.Ticket(2**64 - 1, 255, 2**63, 3)

    def test_a_ticket_survives_pickling_and_its_bytes(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            data = pickle.dumps(self.TICKET, protocol)
            self.assertEqual(pickle.loads(data), self.TICKET)
        again = tensorarena.Ticket.from_bytes(bytes(self.TICKET))
        self.assertEqual(again, self.TICKET)
        self.assertEqual((again.arena, again.slot, again.generation,
                          again.nbytes), (2**64 - 1, 255, 2**63, 3))

    def test_the_bytes_of_a_ticket_have_a_layout_for_good(self):
        ticket = tensorarena.Ticket(0x1112131415161718, 5,
                                    0x2122232425262728, 0x31)
        self.assertEqual(bytes(ticket), b"TAK1" b"\5\0\0\0"
                         b"\x18\x17\x16\x15\x14\x13\x12\x11"
                         b"\x28\x27\x26\x25\x24\x23\x22\x21"
                         b"\x31\0\0\0\0\0\0\0")

    def test_what_is_not_a_ticket_is_refused(self):
        good = bytes(self.TICKET)
        for bad in (b"", good[:-1], good + b"\0", b"TAK2" + good[4:],
                    good[:5] + b"\1" + good[6:]):
            with self.assertRaises(ValueError):
                tensorarena.Ticket.from_bytes(bad)
        with self.assertRaises(OverflowError):
            tensorarena.Ticket(2**64, 0, 0, 0)
        with self.assertRaises(ValueError):
            tensorarena.Ticket(0, 256, 0, 0)
        with self.assertRaises(TypeError):
            tensorarena.Ticket(1, 2, 3)

    def test_tickets_are_equal_and_hash_by_value(self):
        same = tensorarena.Ticket(2**64 - 1, 255, 2**63, 3)
        other = tensorarena.Ticket(2**64 - 1, 255, 2**63 + 1, 3)
        self.assertEqual(len({self.TICKET, same, other}), 2)
        self.assertNotEqual(self.TICKET, other)
        self.assertNotEqual(self.TICKET, bytes(self.TICKET))
        with self.assertRaises(AttributeError):
            same.slot = 1
        self.assertIn("slot=255", repr(same))


class Arenas(Case):
    def test_options_that_cannot_be_say_why(self):
        for options, word in (({"slots": 0}, "slots"),
                              ({"slots": 257}, "slots"),
                              ({"seats": 65}, "seats"),
                              ({"slot_bytes": 0}, "bytes"),
                              ({"slot_bytes": 2**63}, "bytes"),
                              ({"node": -2}, "NUMA"),
                              ({"copy_threads": 65}, "threads"),
                              ({"socket_path": "relative"}, "absolute")):
            with self.assertRaisesRegex(tensorarena.Error, word) as caught:
                arena(**options)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
        for options in ({"slots": -1}, {"seats": -1}, {"copy_threads": -1}):
            with self.assertRaises(ValueError):
                arena(**options)
        with self.assertRaises(ValueError):
            tensorarena.Writer(engine="steam")
        with self.assertRaises(TypeError):
            arena(colour="red")

    def test_as_many_threads_copy_as_are_asked_for(self):
        for threads in (1, 3):
            writer = arena(1, 16 * MIB, copy_threads=threads)
            await_true(lambda: copiers() == 0, "others' threads to end")
            writer.put(bytes(16 * MIB))
            await_true(lambda n=threads - 1: copiers() == n, "threads")
            writer.close()

    def test_an_arena_that_does_not_fit_memory_says_the_figures(self):
        with self.assertRaisesRegex(tensorarena.Error, "GiB") as caught:
            arena(slots=256, slot_bytes=1 << 44)
        self.assertIn(caught.exception.errno, (errno.ENOMEM, errno.EDQUOT))

    def test_a_reader_needs_a_handle_that_leads_somewhere(self):
        with self.assertRaises(tensorarena.Error) as caught:
            tensorarena.Reader("nonsense")
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        writer = arena()
        handle = writer.handle
        writer.close()
        with self.assertRaises(tensorarena.Error):
            tensorarena.Reader(handle)

    def test_an_end_says_what_it_is(self):
        writer, reader = pair(3, 5 * MIB)
        self.assertEqual((writer.slots, writer.slot_bytes), (3, 5 * MIB))
        self.assertEqual(writer.engine, ENGINE)
        self.assertEqual((reader.engine, reader.seat), (ENGINE, 0))
        self.assertEqual(reader.handle, writer.handle)
        row, = writer.stats()["readers"]
        self.assertEqual((row["reader"], row["seat"]), (reader.id, 0))

    def test_closed_ends_refuse_everything_but_closing(self):
        writer, reader = pair()
        for end in (reader, writer):
            with end:
                self.assertFalse(end.closed)
            end.close()
            self.assertTrue(end.closed)
            with self.assertRaises(tensorarena.Error) as caught:
                end.stats()
            self.assertEqual(caught.exception.errno, errno.ESHUTDOWN)
        with self.assertRaises(tensorarena.Error):
            writer.put(b"x")
        with self.assertRaises(tensorarena.Error):
            reader.next(0)

    def test_an_end_is_made_once(self):
        writer, reader = pair()
        with self.assertRaises(RuntimeError):
            writer.__init__()
        with self.assertRaises(RuntimeError):
            reader.__init__(writer.handle)
        half = _core.Writer.__new__(_core.Writer)
        with self.assertRaises(tensorarena.Error):
            half.put(b"x")

    def test_an_end_is_made_once_whatever_its_arguments_do(self):
        writer = arena(seats=2)
        reader = tensorarena.Reader.__new__(tensorarena.Reader)

        class MakesIt:
            def __index__(self):
                reader.__init__(writer.handle)
                return -1

        with self.assertRaises(RuntimeError):
            reader.__init__(writer.handle, fd=MakesIt())
        await_true(lambda: writer.stats()["detached"] == 1)
        self.assertEqual([row["reader"] for row in writer.stats()["readers"]],
                         [reader.id])

    def test_a_reader_by_descriptor(self):
        writer = arena()
        if ENGINE == "device":
            with self.assertRaises(tensorarena.Error) as caught:
                writer.connect()
            self.assertEqual(caught.exception.errno, errno.EOPNOTSUPP)
            return
        reader = tensorarena.Reader(writer.handle, fd=writer.connect())
        ticket = writer.put(b"by descriptor")
        self.assertEqual(bytes(reader.view(ticket)), b"by descriptor")


class Puts(Case):
    def test_what_is_put_is_what_is_seen(self):
        writer, reader = pair(slots=1)
        for nbytes in (0, 1, 4096, 2 * MIB):
            data = pattern(nbytes)
            ticket = writer.put(data, tag=b"tag")
            with reader.view(ticket) as view:
                self.assertEqual(bytes(view), data)
                self.assertEqual(view.dtype, "u8")
                self.assertEqual(view.shape, (nbytes,))
                self.assertEqual(view.tag, b"tag")
                self.assertEqual(view.ticket, ticket)
                self.assertEqual(view.nbytes, nbytes)
                self.assertTrue(view.readonly)

    def test_type_and_shape_come_from_the_buffer_or_the_caller(self):
        writer, reader = pair()
        floats = memoryview(array.array("f", range(6))).cast("B")
        for buffer, dtype, shape, seen in (
                (array.array("d", range(3)), None, None, ("f64", (3,))),
                (array.array("l", range(3)), None, None, ("i64", (3,))),
                (floats.cast("f", (2, 3)), None, None, ("f32", (2, 3))),
                (floats.cast("f", (2, 3)), None, (3, 2), ("f32", (3, 2))),
                (floats, "bf16", (4, 3), ("bf16", (4, 3))),
                (floats, "f32", None, ("f32", (6,))),
                (floats, None, (2, 12), ("u8", (2, 12))),
                (floats, "f4_e2m1fn", None, ("f4_e2m1fn", (48,))),
                (floats, "f32x2", None, ("f32x2", (3,))),
                (b"x", None, (), ("u8", ()))):
            ticket = writer.put(buffer, dtype, shape)
            with reader.view(ticket) as view:
                self.assertEqual((view.dtype, view.shape), seen)
                self.assertEqual(bytes(view), bytes(buffer))

    def test_a_description_that_does_not_fit_is_refused(self):
        writer, _ = pair()
        for dtype, shape in (("f32", (1,)), ("f32", None), ("u8", (-2, -1)),
                             ("nonsense", None), ("u8x0", None),
                             ("u8x", None), ("u8", (1,) * 9),
                             (None, (2**62, 8)), ("", None)):
            with self.assertRaises(ValueError):
                writer.put(b"ab", dtype, shape)
        with self.assertRaises(ValueError):
            writer.put(b"ab", tag=b"t" * 161)
        with self.assertRaises(TypeError):
            writer.put("text")
        with self.assertRaises(BufferError):
            writer.put(memoryview(b"abcd")[::2])
        self.assertEqual(writer.stats()["puts"], 0)
        self.assertEqual(writer.stats()["free"], 2)

    def test_bits_of_types(self):
        for name, bits in (("u8", 8), ("bf16", 16), ("c128", 128),
                           ("f4_e2m1fn", 4), ("f32x4", 128), ("bool", 8)):
            self.assertEqual(tensorarena.dtype_bits(name), bits)
        with self.assertRaises(ValueError):
            tensorarena.dtype_bits("f33")

    def test_declines_are_none_and_counted_by_reason(self):
        writer, reader = pair(slots=1)
        self.assertIsNone(writer.last_decline)
        self.assertIsNone(writer.put(bytes(2 * MIB + 1)))
        self.assertEqual(writer.last_decline, "oversize")
        writer.put(b"x")
        self.assertIsNone(writer.put(b"y"))
        self.assertEqual(writer.last_decline, "no_slot")
        self.assertIsNone(writer.loan(1))
        writer.decline("too_cold")
        self.assertEqual(writer.last_decline, "too_cold")
        reader.close()
        self.assertIsNone(writer.put(b"z"))
        self.assertEqual(writer.last_decline, "no_reader")
        self.assertEqual(writer.declines, {"oversize": 1, "no_slot": 2,
                                           "too_cold": 1, "no_reader": 1})
        self.assertEqual(writer.stats()["declines"], writer.declines)

    def test_reasons_without_end_are_counted_as_other(self):
        writer = arena()
        for number in range(100):
            writer.decline(f"reason {number}")
        counts = writer.declines
        self.assertEqual(len(counts), 32)
        self.assertEqual(sum(counts.values()), 100)
        self.assertEqual(counts["other"], 69)

    def test_a_put_for_some_readers_is_for_no_others(self):
        writer = arena(seats=2)
        first, second = (tensorarena.Reader(writer.handle) for _ in "ab")
        ticket = writer.put(b"for the second", readers=[second.id])
        self.assertIsNone(first.next(0))
        with self.assertRaises(tensorarena.NotAddressed) as caught:
            first.view(ticket)
        self.assertEqual(caught.exception.errno, errno.ENXIO)
        self.assertEqual(bytes(second.next(0)), b"for the second")
        gone = second.id
        second.close()
        with self.assertRaises(tensorarena.StaleTicket):
            writer.put(b"x", readers=[gone])
        self.assertEqual(writer.stats()["writing"], 0)
        with self.assertRaises(ValueError):
            writer.put(b"x", readers=[first.id] * 65)

    def test_the_gil_is_dropped_while_copying(self):
        writer, reader = pair(slots=1, slot_bytes=256 * MIB)
        source = bytearray(256 * MIB)

        def longest_pause():
            """Of another thread during a copy, as a part of it."""
            ticks, stop = [], threading.Event()

            def tick():
                while not stop.is_set():
                    ticks.append(time.monotonic())

            thread = threading.Thread(target=tick)
            thread.start()
            start = time.monotonic()
            writer.put(source)
            end = time.monotonic()
            stop.set()
            thread.join()
            reader.next(0).release()
            within = [start, *(t for t in ticks if start < t < end), end]
            pauses = (b - a for a, b in zip(within, within[1:]))
            return max(pauses) / (end - start)

        # The other one may not get a processor during one of them.
        self.assertTrue(any(longest_pause() < 0.5 for _ in range(20)))


class Readers(Case):
    def test_next_gives_publications_in_order(self):
        writer, reader = pair(slots=3)
        for text in (b"one", b"two", b"three"):
            writer.put(text)
        seen = [bytes(reader.next(0)) for _ in range(3)]
        self.assertEqual(seen, [b"one", b"two", b"three"])
        self.assertIsNone(reader.next(0))
        self.assertIsNone(reader.next(timeout=0.001))

    def test_next_waits_without_the_gil(self):
        writer, reader = pair()
        threading.Timer(0.05, writer.put, [b"late"]).start()
        self.assertEqual(bytes(reader.next()), b"late")

    def test_a_timeout_that_cannot_be_is_refused(self):
        _, reader = pair()
        for timeout in (-1, float("nan"), float("inf"), 2**40):
            with self.assertRaises(ValueError):
                reader.next(timeout)

    def test_a_signal_is_handled_while_next_waits(self):
        import signal

        writer, reader = pair()
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(True))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        threading.Timer(0.15, writer.put, [b"after"]).start()
        self.assertEqual(bytes(reader.next()), b"after")
        self.assertTrue(seen)

        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        with self.assertRaises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            reader.next()

    def test_descriptors_tell_when_to_look(self):
        writer, reader = pair(slots=1)

        def events(end):
            poll = select.poll()
            fd, wanted = end.poll_fd()
            poll.register(fd, wanted)
            return bool(poll.poll(0))

        await_true(lambda: events(writer))
        self.assertFalse(events(reader))
        writer.put(b"x")
        await_true(lambda: events(reader) and not events(writer))
        reader.next(0).release()
        await_true(lambda: events(writer) and not events(reader))

    def test_the_writer_throws_out_readers_and_closes_seats(self):
        writer = arena(seats=2)
        reader = tensorarena.Reader(writer.handle)
        writer.close_seat(1)
        with self.assertRaises(tensorarena.StaleTicket):
            writer.close_seat(1)
        writer.put(b"x")
        writer.evict(reader.id)
        with self.assertRaises(tensorarena.Evicted) as caught:
            reader.next(0)
        self.assertEqual(caught.exception.errno, errno.EOWNERDEAD)
        await_free(writer)

    def test_the_writer_gone_is_told_after_the_rest(self):
        writer, reader = pair()
        writer.put(b"last words")
        if ENGINE == "embedded":
            # Its readers get nothing new after the writer.
            reader.next(0)
        writer.close()
        if ENGINE == "device":
            self.assertEqual(bytes(reader.next(0)), b"last words")
        with self.assertRaises(tensorarena.WriterGone) as caught:
            reader.next()
        self.assertEqual(caught.exception.errno, errno.EPIPE)


class Views(Case):
    def test_a_view_is_a_read_only_buffer_of_its_type(self):
        writer, reader = pair()
        source = array.array("h", range(24))
        ticket = writer.put(memoryview(source).cast("B").cast("h", (4, 6)))
        view = reader.view(ticket)
        seen = memoryview(view)
        self.assertEqual((seen.format, seen.itemsize), ("h", 2))
        self.assertEqual((seen.shape, seen.strides), ((4, 6), (12, 2)))
        self.assertTrue(seen.readonly and seen.c_contiguous)
        self.assertEqual(seen.tolist()[3][5], 23)
        self.assertEqual(bytes(view), source.tobytes())
        with self.assertRaises(TypeError):
            seen[0, 0] = 1

    def test_types_that_struct_does_not_know_are_bytes(self):
        writer, reader = pair()
        for dtype in ("bf16", "f8_e4m3fn", "c32", "f32x2"):
            ticket = writer.put(bytes(16), dtype)
            seen = memoryview(reader.view(ticket))
            self.assertEqual((seen.format, seen.shape), ("B", (16,)))

    def test_every_type_that_struct_knows_has_its_code(self):
        writer, reader = pair(slots=14)
        for dtype, code in (("bool", "?"), ("i8", "b"), ("i16", "h"),
                            ("i32", "i"), ("i64", "q"), ("u8", "B"),
                            ("u16", "H"), ("u32", "I"), ("u64", "Q"),
                            ("f16", "e"), ("f32", "f"), ("f64", "d"),
                            ("c64", "Zf"), ("c128", "Zd")):
            ticket = writer.put(bytes(32), dtype)
            seen = memoryview(reader.view(ticket))
            self.assertEqual(seen.format, code)
            self.assertEqual(seen.itemsize * 8, tensorarena.dtype_bits(dtype))

    def test_writable_arenas_give_writable_views(self):
        writer, reader = pair(writable=True)
        ticket = writer.put(bytes(4))
        view = reader.view(ticket)
        self.assertFalse(view.readonly)
        memoryview(view)[2] = 7
        self.assertEqual(bytes(reader.view(ticket)), b"\0\0\7\0")

    def test_dlpack_of_read_only_memory_needs_a_consumer_that_knows(self):
        writer, reader = pair()
        view = reader.view(writer.put(bytes(4)))
        self.assertEqual(view.__dlpack_device__(), (1, 0))
        for version in (None, (0, 8)):
            with self.assertRaises(BufferError):
                view.__dlpack__(max_version=version)
        self.assertIn("dltensor_versioned",
                      repr(view.__dlpack__(max_version=(1, 0))))
        self.assertIn('"dltensor"', repr(view.dlpack_bytes()))
        for wrong in ({"copy": True}, {"stream": 1}, {"dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                view.__dlpack__(max_version=(1, 1), **wrong)
        view.__dlpack__(max_version=(2, 0), copy=False, dl_device=(1, 0))

    def test_a_view_given_up_by_what_dlpack_asks_for_is_not_exported(self):
        writer, reader = pair()

        class GivesUp(tuple):
            def __getitem__(self, index):
                self.give_up()
                return super().__getitem__(index)

            def __eq__(self, other):
                self.give_up()
                return super().__eq__(other)

            def give_up(self):
                view.release()
                # Frees what nothing shares.
                reader.flush_releases()

        for asked in ({"max_version": GivesUp((1, 0))},
                      {"max_version": (1, 0), "dl_device": GivesUp((1, 0))}):
            with self.subTest(asked):
                view = reader.view(writer.put(b"abc"))
                with self.assertRaisesRegex(ValueError, "given up"):
                    view.__dlpack__(**asked)
        self.assertEqual(published(writer), 0)

    def test_dlpack_of_writable_memory_is_for_all(self):
        writer, reader = pair(writable=True)
        view = reader.view(writer.put(bytes(4)))
        self.assertIn('"dltensor"', repr(view.__dlpack__()))

    def test_a_capsule_that_nobody_takes_gives_up_its_share(self):
        writer, reader = pair()
        view = reader.view(writer.put(bytes(4)))
        capsules = [view.__dlpack__(max_version=(1, 0)), view.dlpack_bytes()]
        view.release()
        self.assertEqual(published(writer), 1)
        del capsules
        await_free(writer)

    def test_a_released_view_only_knows_its_ticket(self):
        writer, reader = pair()
        ticket = writer.put(b"x")
        view = reader.view(ticket)
        self.assertFalse(view.released)
        view.release()
        view.release()
        self.assertTrue(view.released)
        self.assertEqual(view.ticket, ticket)
        for use in (lambda: view.nbytes, lambda: memoryview(view),
                    lambda: view.address, view.dlpack_bytes,
                    lambda: view.record_stream(0)):
            with self.assertRaises(ValueError):
                use()

    def test_views_and_loans_come_from_arenas_only(self):
        for made in (tensorarena.View, tensorarena.Loan, _core._Memory):
            with self.assertRaises(TypeError):
                made()

    def test_a_view_is_found_by_any_address_in_it(self):
        writer, reader = pair()
        view = reader.view(writer.put(b"1234"))
        found = _core.view_at(view.address + 3)
        self.assertEqual(found.ticket, view.ticket)
        self.assertIsNone(_core.view_at(view.address + 4))
        self.assertIsNone(_core.view_at(1))
        del found
        view.release()
        await_free(writer)

    def test_objects_can_be_referred_to_weakly(self):
        writer, reader = pair()
        view = reader.view(writer.put(b"x"))
        loan = writer.loan(1)
        things = [view, loan, reader, writer]
        references = [weakref.ref(thing) for thing in things]
        del view, loan, reader, writer, things
        self.assertEqual([r() for r in references], [None] * 4)


if __name__ == "__main__":
    main()
