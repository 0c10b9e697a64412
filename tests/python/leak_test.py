#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Nothing is left behind by thousands of cycles: slots, memory, descriptors."""

import gc
import io
import os
import pickle
import sys
import threading

from harness import Case, await_free, main, pair, pattern
import tensorarena
from tensorarena.pickling import ArenaPickler

CYCLES = 10_000
# Growth that tells nothing: arenas of malloc(), caches of the interpreter.
SLACK_PAGES = 256
SLACK_OBJECTS = 500


def resident_pages():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1])


class Flat(Case):
    def check(self, cycle, cycles=CYCLES):
        """Growth after the first tenth, which fills pools and caches."""
        for number in range(cycles // 10):
            cycle(number)
        gc.collect()
        objects, pages = sys.getallocatedblocks(), resident_pages()
        files = len(os.listdir("/proc/self/fd"))
        for number in range(cycles):
            cycle(number)
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - objects, SLACK_OBJECTS)
        self.assertLess(resident_pages() - pages, SLACK_PAGES)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_put_and_view(self):
        writer, reader = pair(slots=2)
        data = pattern(1000)

        def cycle(number):
            ticket = writer.put(data, "u16", (50, 10), tag=b"tag")
            view = reader.view(pickle.loads(pickle.dumps(ticket)))
            memory = memoryview(view)
            capsule = view.dlpack_bytes(), view.__dlpack__(max_version=(1, 0))
            assert memory[0, 0] == int.from_bytes(data[:2], "little")
            assert view.shape == (50, 10) and view.tag == b"tag"
            del view, memory, capsule
            reader.flush_releases()

        self.check(cycle)
        self.assertEqual(writer.stats()["free"], 2)
        self.assertEqual(writer.declines, {})
        self.assertEqual(writer.stats()["puts"], CYCLES * 11 // 10)

    def test_errors_and_declines(self):
        writer, reader = pair(slots=1)
        held = writer.put(b"x")
        stale = tensorarena.Ticket(held.arena, 0, 99, 1)

        def cycle(number):
            assert writer.put(b"y") is None
            assert writer.loan(1) is None
            for call in (lambda: reader.view(stale),
                         lambda: writer.put(b"ab", "f32"),
                         lambda: writer.put("text"),
                         lambda: writer.put(b"x", shape=[None]),
                         lambda: writer.put(b"x", readers=["y"]),
                         lambda: tensorarena.Ticket.from_bytes(b"short"),
                         lambda: reader.next(-1)):
                try:
                    call()
                except (OSError, ValueError, TypeError):
                    continue
                raise AssertionError

        self.check(cycle)

    def test_loans_and_pickles(self):
        writer, reader = pair(slots=2)

        def cycle(number):
            file = io.BytesIO()
            pickler = ArenaPickler(file, writer)
            loan = writer.loan(100)
            memoryview(loan)[:] = bytes(100)
            pickler.dump([loan])
            if number % 3:
                pickler.commit()
                pickle.loads(file.getvalue())
            del pickler, loan
            reader.flush_releases()

        self.check(cycle)
        self.assertEqual(writer.stats()["free"], 2)

    def test_views_that_die_on_another_thread(self):
        writer, reader = pair(slots=4)
        handed, stop = [], threading.Event()

        def bury():
            while not stop.is_set() or handed:
                handed.clear()

        def cycle(number):
            ticket = writer.put(b"x")
            if ticket:
                handed.append(memoryview(reader.view(ticket)))

        thread = threading.Thread(target=bury)
        thread.start()
        try:
            self.check(cycle)
        finally:
            stop.set()
            thread.join()
        await_free(writer)

    def test_arenas_that_come_and_go(self):
        def cycle(number):
            writer, reader = pair(slots=1)
            view = reader.view(writer.put(b"x"))
            if number % 2:
                del view
            else:
                memory = memoryview(view)
                reader.close()
                writer.close()
                assert bytes(memory) == b"x"
            if number % 3:
                reader.close()
                writer.close()

        def settled(number):
            before = len(os.listdir("/proc/self/fd"))
            cycle(number)
            # What closes last does so in the reaper.
            for _ in range(60_000):
                if len(os.listdir("/proc/self/fd")) <= before:
                    return
                threading.Event().wait(0.001)
            raise AssertionError("descriptors stay open")

        self.check(settled, 200)


if __name__ == "__main__":
    main()
