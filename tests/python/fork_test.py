#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""In a forked child everything inherited is dead, and harmless."""

import errno
import gc
import os
import pickle
import sys
import threading
import traceback

from harness import Case, await_free, await_true, main, pair, published, \
    run_case
import tensorarena
from tensorarena import _arena, _core


def in_child(function):
    """Runs a function in a forked child; returns the child's exit status."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        function()
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


class Forked(Case):
    def test_calls_on_what_was_inherited_fail_and_say_why(self):
        writer, reader = pair()
        ticket = writer.put(b"x")
        view, loan = reader.view(ticket), writer.loan(1)

        def child():
            for call in (lambda: writer.put(b"y"), lambda: writer.loan(1),
                         writer.stats, writer.trim, writer.poll_fd,
                         lambda: writer.evict(1), writer.connect,
                         lambda: reader.view(ticket), lambda: reader.next(0),
                         reader.flush_releases, reader.stats, reader.prepare,
                         lambda: memoryview(view), view.dlpack_bytes,
                         lambda: loan.write(b"z"), loan.commit, loan.abort,
                         lambda: reader.seat, lambda: writer.engine):
                try:
                    call()
                except tensorarena.WrongProcess as error:
                    assert error.errno == errno.EIO
                else:
                    raise AssertionError(call)
            assert view.ticket == ticket and writer.handle == reader.handle
            assert _core.view_at(1) is None

        self.assertEqual(in_child(child), 0)
        self.assertEqual(bytes(view), b"x")
        loan.write(b"z")
        self.assertIsNotNone(loan.commit())

    def test_a_child_that_drops_or_closes_all_takes_nothing_away(self):
        writer, reader = pair()
        view = reader.view(writer.put(b"parent's"))
        memory = memoryview(view)
        capsule = view.dlpack_bytes()
        loan = writer.loan(1)

        def child():
            nonlocal view, memory, capsule, loan, writer, reader
            view.release()
            memory.release()
            del view, memory, capsule, loan
            reader.close()
            del writer, reader
            gc.collect()

        self.assertEqual(in_child(child), 0)
        self.assertEqual(bytes(memory), b"parent's")
        self.assertEqual(published(writer), 1)
        self.assertEqual(writer.stats()["writing"], 1)
        self.assertEqual(len(writer.stats()["readers"]), 1)
        del view, memory, capsule
        await_free(writer)

    def test_a_childs_interpreter_ends_cleanly(self):
        self.assertEqual(run_case("exit_case.py", "fork"), (0, b"alive\n"))

    def test_a_child_keeps_none_of_the_descriptors(self):
        before = set(filter(is_open, range(1000)))
        writer, reader = pair()
        view = reader.view(writer.put(b"x"))
        inherited = set(filter(is_open, range(1000))) - before
        self.assertTrue(inherited)

        def child():
            left = set(filter(is_open, inherited))
            assert not left, left

        self.assertEqual(in_child(child), 0)
        self.assertEqual(bytes(view), b"x")

    def test_a_child_attaches_for_itself(self):
        writer, reader = pair(slots=4)
        handle = writer.handle
        self.assertIs(_arena.attach(handle), reader)
        ready, go = os.pipe(), os.pipe()

        def child():
            own = tensorarena.attach(handle)
            assert own is not reader
            os.write(ready[1], b"x")
            view = own.next(60)
            assert bytes(view) == b"for both"
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            del view
            # A thread of the child's releases it while this one does nothing.
            os.read(go[0], 1)

        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            try:
                child()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.read(ready[0], 1)
        writer.put(b"for both")
        os.read(ready[0], 1)
        reader.next(0).release()
        reader.flush_releases()
        self.assertEqual(published(writer), 1)
        os.write(go[1], b"x")
        await_free(writer)
        os.write(go[1], b"x")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_child_makes_arenas_of_its_own(self):
        writer, reader = pair()
        view = reader.view(writer.put(b"x"))

        def child():
            own_writer, own_reader = pair()
            own = own_reader.view(own_writer.put(b"own"))
            assert bytes(own) == b"own"
            del own
            await_free(own_writer)

        self.assertEqual(in_child(child), 0)
        self.assertEqual(bytes(view), b"x")

    def test_forks_among_busy_threads_do_no_harm(self):
        writer, reader = pair(slots=4)
        stop = threading.Event()

        def work():
            while not stop.is_set():
                ticket = writer.put(b"busy")
                if ticket:
                    pickle.loads(pickle.dumps(ticket))
                    del ticket
                view = reader.next(0)
                if view:
                    bytes(view)

        def child():
            own_writer, own_reader = pair()
            own = own_reader.view(own_writer.put(b"own"))
            del own
            await_free(own_writer)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            statuses = [in_child(child) for _ in range(40)]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(statuses, [0] * 40)
        while reader.next(0):
            pass
        await_true(lambda: writer.stats()["free"] == 4)


if __name__ == "__main__":
    main()
