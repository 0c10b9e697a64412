#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Words that processes share."""

import mmap
import os
import signal
import threading
import time

from harness import HANG_S, Case, main
from tensorarena._core import Words


class Shared(Case):
    def setUp(self):
        self.memory = mmap.mmap(-1, 4096)
        self.words = Words(self.memory)

    def test_what_was_stored_is_loaded(self):
        self.words.store(3, 0xFFFFFFFF)
        self.assertEqual(self.words.load(3), 0xFFFFFFFF)
        self.assertEqual(self.memory[12:16], b"\xff" * 4)
        self.words.ring(3)
        self.assertEqual(self.words.load(3), 0)

    def test_what_grows_is_never_less(self):
        for value, seen in (5, 5), (3, 5), (0xFFFFFFFF, 0xFFFFFFFF), (0, -1):
            self.words.grow(3, value)
            self.assertEqual(self.words.load(3), seen & 0xFFFFFFFF)
        self.assertEqual(self.memory[:12], bytes(12))
        self.assertEqual(self.memory[16:20], bytes(4))

    def grow_step_by_step(self, values):
        """Whether the word was never less than it had been made."""
        for value in values:
            self.words.grow(0, value)
            if self.words.load(0) < value:
                return False
        return True

    def test_what_one_process_grows_another_does_not_make_less(self):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                status = not self.grow_step_by_step(range(0, 300_000, 2))
            finally:
                os._exit(status)
        self.assertTrue(self.grow_step_by_step(range(1, 300_000, 2)))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_there_are_no_others(self):
        for index in (-1, 1024, 1 << 62):
            for call in (self.words.load, self.words.ring,
                         lambda i: self.words.store(i, 1),
                         lambda i: self.words.grow(i, 1),
                         lambda i: self.words.wait(i, 0, 0)):
                self.assertRaises(IndexError, call, index)
        self.assertRaises(TypeError, self.words.load, "x")
        self.assertRaises(TypeError, self.words.ring, "x")

    def test_a_buffer_has_to_be_writable_and_aligned(self):
        self.assertRaises(BufferError, Words, bytes(8))
        self.assertRaises(TypeError, Words, 5)
        self.assertRaises(ValueError, Words, memoryview(self.memory)[1:])

    def test_the_memory_stays_for_as_long_as_they_do(self):
        self.assertRaises(BufferError, self.memory.close)
        del self.words
        self.memory.close()

    def test_a_wait_is_over_at_once_when_the_word_is_another(self):
        start = time.monotonic()
        self.words.wait(0, 1, HANG_S)
        self.assertLess(time.monotonic() - start, HANG_S / 2)

    def test_a_wait_lasts_until_its_time(self):
        start = time.monotonic()
        self.words.wait(0, 0, 0.02)
        self.assertGreaterEqual(time.monotonic() - start, 0.02)
        for seconds in (-1, float("nan"), 1e10):
            self.assertRaises(ValueError, self.words.wait, 0, 0, seconds)

    def test_another_process_wakes_all_that_wait(self):
        woken = []
        threads = [threading.Thread(target=lambda: woken.append(
            self.words.wait(0, 0, HANG_S))) for _ in range(3)]
        for thread in threads:
            thread.start()
        pid = os.fork()
        if not pid:
            time.sleep(0.05)
            self.words.ring(0)
            os._exit(0)
        start = time.monotonic()
        for thread in threads:
            thread.join()
        os.waitpid(pid, 0)
        self.assertEqual(len(woken), 3)
        self.assertLess(time.monotonic() - start, HANG_S / 2)

    def test_a_signal_is_handled_during_a_wait(self):
        def handler(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, handler)
        try:
            with self.assertRaises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                self.words.wait(0, 0, HANG_S)
        finally:
            signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
