#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""An engine and its workers in two and in five processes."""

import pickle

import harness
from harness import MIB, Case, Worker, await_free, await_true, main, pattern
import tensorarena


# What workers do.

def attach(state, handle):
    state.reader = tensorarena.Reader(handle)
    state.views = []
    return state.reader.seat


def check(state, ticket, seed):
    """Looks at every byte and lets go."""
    with state.reader.view(pickle.loads(ticket)) as view:
        return bytes(view) == pattern(view.nbytes, seed)


def check_next(state, seeds):
    seen = []
    for seed in seeds:
        with state.reader.next(harness.HANG_S) as view:
            seen.append(bytes(view) == pattern(view.nbytes, seed))
    return seen


def hold_next(state):
    state.views.append(memoryview(state.reader.next(harness.HANG_S)))


def check_held(state, seed):
    view = state.views.pop(0)
    return bytes(view) == pattern(view.nbytes, seed)


# What the engine does, when that is not this process.

def create(state, readers):
    state.writer = harness.arena(slots=3, seats=readers)
    return state.writer.handle


def put(state, nbytes, seed):
    ticket = state.writer.put(pattern(nbytes, seed))
    return ticket and pickle.dumps(ticket)


def free_slots(state):
    return state.writer.stats()["free"]


class Together(Case):
    def broadcast(self, method, readers):
        """The engine and each worker a process of its own."""
        engine = Worker(method)
        workers = [Worker(method) for _ in range(readers)]
        try:
            handle = engine.call(create, readers)
            seats = [worker.call(attach, handle) for worker in workers]
            self.assertEqual(sorted(seats), list(range(readers)))
            for seed, nbytes in enumerate((1, 4097, MIB, 2 * MIB)):
                ticket = engine.call(put, nbytes, seed)
                for worker in workers:
                    worker.start(check, ticket, seed)
                self.assertEqual([w.result() for w in workers],
                                 [True] * readers)
                await_true(lambda: engine.call(free_slots) == 3)
        finally:
            for worker in workers + [engine]:
                worker.kill()

    def test_two_processes_by_spawn(self):
        self.broadcast("spawn", 1)

    def test_two_processes_by_fork(self):
        self.broadcast("fork", 1)

    def test_five_processes_by_spawn(self):
        self.broadcast("spawn", 4)

    def test_five_processes_by_fork(self):
        self.broadcast("fork", 4)

    def test_workers_forked_by_an_engine_with_an_arena(self):
        writer = harness.arena(slots=3, seats=4)
        own = tensorarena.Reader(writer.handle)
        view = own.view(writer.put(b"only the engine's own"))
        workers = [Worker("fork") for _ in range(3)]
        try:
            for worker in workers:
                worker.call(attach, writer.handle)
                worker.start(check_next, [])
                self.assertEqual(worker.result(), [])
            for worker in workers:
                worker.start(hold_next)
            for worker in workers:
                worker.result()
            writer.put(pattern(MIB, 5))
            for worker in workers:
                worker.call(hold_next)
            own.next(0).release()
            self.assertEqual(len(writer.stats()["readers"]), 4)
            workers[0].kill()
            self.assertTrue(workers[1].call(drop_first))
            self.assertTrue(workers[2].call(drop_first))
            for worker in workers[1:]:
                self.assertTrue(worker.call(check_held, 5))
            del view
            await_free(writer)
        finally:
            for worker in workers:
                worker.kill()

    def test_a_slow_worker_keeps_its_slots_and_no_other(self):
        for method in ("spawn", "fork"):
            with self.subTest(method), Worker(method) as slow, \
                    Worker(method) as quick:
                writer = harness.arena(slots=3, seats=2)
                slow.call(attach, writer.handle)
                quick.call(attach, writer.handle)
                writer.put(pattern(MIB, 0))
                slow.call(hold_next)
                self.assertEqual(quick.call(check_next, [0]), [True])
                for seed in range(1, 21):
                    await_true(lambda: writer.stats()["free"] >= 2)
                    writer.put(pattern(MIB, seed))
                    for worker in (slow, quick):
                        self.assertEqual(worker.call(check_next, [seed]),
                                         [True])
                self.assertTrue(slow.call(check_held, 0))
                await_free(writer)

    def test_tickets_cross_a_queue_that_is_not_ours(self):
        with Worker("spawn") as worker:
            writer = harness.arena(slots=3)
            worker.call(attach, writer.handle)
            for seed in range(30):
                ticket = writer.put(pattern(100_000, seed))
                self.assertTrue(worker.call(check, pickle.dumps(ticket), seed))
                await_free(writer)


def drop_first(state):
    return bytes(state.views.pop(0)) == b"only the engine's own"


if __name__ == "__main__":
    main()
