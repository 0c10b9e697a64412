#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""vLLM's message queue with an arena: what reaches the workers, and for how long
a slot is kept.  VLLM_TREE=/path/to/vllm runs the same on that queue."""

import copyreg
import gc
import logging
import weakref

import torch

from harness import MIB, Case, await_true, main
from tensorarena._vllm_queue import Message
import vllm_engine
from vllm_engine import SHAPES, Engine, keep, kept, drop, leave, places, \
    random, receive, scheduled, seen, vllm, without_places, writes


class Bad:
    def __reduce__(self):
        raise RuntimeError("cannot be pickled")


class Nested:
    """What is pickled broadcasts a message of its own."""

    def __init__(self, queue):
        self.queue = queue

    def __reduce__(self):
        self.queue.enqueue("inner")
        return str, ("outer",)


class Odd:
    """Pickled as copyreg says just then."""


class Broadcast(Case):
    def broadcast(self, shape, method, readers):
        torch.manual_seed(readers)
        with vllm(shape) as (module, log), \
                Engine(module, readers, method) as engine:
            self.assertEqual(len(log.about("through an arena")), 1, log.lines)
            pixels = random(), random(2 * MIB, torch.float32)
            for message, expected in (
                    (scheduled(), []),
                    (scheduled(*pixels), [True, False] * 2),
                    (scheduled(random(MIB // 2)), [False, False]),
                    (scheduled(random(), mask=random(3 * MIB)),
                     [True, False, False]),
                    (torch.nn.Parameter(random(), requires_grad=False),
                     [True]),
                    (scheduled(random().t()), [False, False]),
                    ([b"x" * 3 * MIB, random()], [True])):
                for got in engine.send(message):
                    self.assertEqual(without_places(got),
                                     without_places(seen(message)))
                    self.assertEqual(places(got), expected)
                engine.await_free()
            self.assertEqual(engine.writer.stats()["puts"], 5)

    def test_two_workers_by_fork_get_every_byte(self):
        for shape in SHAPES:
            with self.subTest(shape):
                self.broadcast(shape, "fork", 2)

    def test_four_workers_by_fork_get_every_byte(self):
        for shape in SHAPES:
            with self.subTest(shape):
                self.broadcast(shape, "fork", 4)

    def test_two_workers_by_spawn_get_every_byte(self):
        self.broadcast(SHAPES[0], "spawn", 2)

    def test_four_workers_by_spawn_get_every_byte(self):
        self.broadcast(SHAPES[-1], "spawn", 4)

    def test_remote_readers_get_the_bytes_and_local_ones_the_slot(self):
        for shape in SHAPES:
            with self.subTest(shape), vllm(shape) as (module, log), \
                    Engine(module, 2, remote=1) as engine:
                for message, local in (
                        (scheduled(random()), [True, False]),
                        (scheduled(), []),
                        (scheduled(random(3 * MIB)), [False, False])):
                    got = engine.send(message)
                    self.assertEqual([places(one) for one in got],
                                     [local, local, [False] * len(local)])
                    for one in got:
                        self.assertEqual(without_places(one),
                                         without_places(seen(message)))
                    self.assertEqual((engine.queue.n_local_reader,
                                      engine.queue.n_remote_reader), (2, 1))

    def test_declines_are_counted_and_logged_once_in_a_while(self):
        with vllm() as (module, log), Engine(module) as engine:
            trained = torch.nn.Parameter(random(dtype=torch.float32))
            for _ in range(3):
                engine.send([random(3 * MIB), random().t(), trained,
                             random(64)])
            declines = engine.writer.declines
            self.assertEqual(declines, {"oversize": 3, "not_contiguous": 3,
                                        "requires_grad": 3, "small": 3})
            for reason in ("oversize", "not_contiguous", "requires_grad"):
                line, = log.about(f": {reason} (1 so far)")
            self.assertFalse(log.about("small"))
            state, = (seen for seen in vllm_engine.tensorarena.vllm.stats()
                      if seen["queue"] == engine.outlet.number)
            self.assertTrue(state["in_use"])
            self.assertEqual(state["declines"], declines)


class Lifetime(Case):
    def test_a_worker_that_keeps_a_slice_keeps_its_slot_and_no_other(self):
        with vllm() as (module, log), Engine(module) as engine:
            first, second = engine.workers
            message = scheduled(random())
            first.start(keep)
            second.start(vllm_engine.receive)
            engine.queue.enqueue(message)
            self.assertTrue(first.result())
            second.result()
            pixels = message[1][0]["requests"][0]["features"][0]
            expected = [seen(pixels["pixel_values"][1:3])[0]]
            for _ in range(20):
                engine.send(scheduled(random()))
                await_true(lambda: engine.published() == 1)
            self.assertEqual([got for got, _ in first.call(kept)], expected)
            first.call(drop)
            engine.await_free()

    def test_without_a_free_slot_vllm_sends_it(self):
        with vllm() as (module, log), Engine(module) as engine:
            for expected in (True, True, True, False):
                for worker in engine.workers:
                    worker.start(keep)
                engine.queue.enqueue(scheduled(random()))
                self.assertEqual([w.result() for w in engine.workers],
                                 [expected] * 2)
            self.assertEqual(engine.writer.declines["no_slot"], 1)
            self.assertTrue(log.about("no_slot (1 so far)"))
            for worker in engine.workers:
                worker.call(drop)
            engine.await_free()

    def test_a_worker_that_dies_gives_its_slots_back(self):
        with vllm() as (module, log), Engine(module, 4) as engine:
            for worker in engine.workers:
                worker.start(keep)
            engine.queue.enqueue(scheduled(random()))
            for worker in engine.workers:
                self.assertTrue(worker.result())
            for worker in engine.workers[1:]:
                worker.call(drop)
            self.assertEqual(engine.published(), 1)
            engine.workers[0].kill()
            engine.await_free()

    def test_a_message_that_cannot_be_pickled_leaves_nothing_behind(self):
        with vllm() as (module, log), Engine(module) as engine:
            with self.assertRaisesRegex(RuntimeError, "cannot be pickled"):
                engine.queue.enqueue(scheduled(random(), bad=Bad()))
            self.assertEqual(engine.writer.stats()["free"], 3)
            self.assertEqual(places(engine.send(scheduled(random()))[0]),
                             [True, False])

    def test_a_broadcast_within_a_broadcast_is_one_of_its_own(self):
        with vllm() as (module, _), Engine(module, 2) as engine:
            self.assertEqual(
                engine.send([random(), Nested(engine.queue)]), ["inner"] * 2)
            for worker in engine.workers:
                worker.start(receive)
            for worker in engine.workers:
                self.assertEqual(places(worker.result()), [True])
            engine.await_free()

    def test_a_queue_without_room_leaves_nothing_behind(self):
        for shape in SHAPES:
            with self.subTest(shape), vllm(shape) as (module, log), \
                    Engine(module, max_chunks=2) as engine:
                for number in range(2):
                    engine.queue.enqueue(number)
                with self.assertRaises(TimeoutError):
                    engine.queue.enqueue(scheduled(random()), 0.01)
                self.assertEqual(engine.writer.stats()["free"], 3)
                self.assertEqual(engine.writer.stats()["puts"], 0)
                for number in range(2):
                    for worker in engine.workers:
                        self.assertEqual(worker.call(vllm_engine.receive),
                                         number)
                self.assertEqual(places(engine.send(scheduled(random()))[0]),
                                 [True, False])

    def test_when_all_readers_have_left_the_arena_vllm_sends_it(self):
        for shape in SHAPES:
            with self.subTest(shape), vllm(shape) as (module, log), \
                    Engine(module) as engine:
                for worker in engine.workers:
                    worker.call(leave)
                message = scheduled(random())
                for got in engine.send(message):
                    self.assertEqual(without_places(got),
                                     without_places(seen(message)))
                    self.assertEqual(places(got), [False, False])
                self.assertIn("no_reader", engine.writer.declines)
                self.assertEqual(engine.writer.stats()["free"], 3)

    def test_an_arena_that_fails_is_left_alone(self):
        with vllm() as (module, log), Engine(module) as engine:
            engine.writer.close()
            for _ in range(2):
                message = scheduled(random())
                for got in engine.send(message):
                    self.assertEqual(places(got), [False, False])
            self.assertEqual(len(log.about("goes on without its arena")), 1)

    def test_each_message_has_its_own_dispatch_table(self):
        with vllm(SHAPES[-1]) as (module, log), Engine(module) as engine:
            for number in range(3):
                copyreg.pickle(Odd, lambda odd: (int, (number,)))
                try:
                    self.assertEqual(engine.send(Odd()), [number] * 2)
                finally:
                    del copyreg.dispatch_table[Odd]

    def test_a_message_leaves_no_garbage_behind(self):
        with vllm() as (module, log), Engine(module) as engine:
            engine.send(scheduled(random()))
            gc.collect()
            gc.disable()
            try:
                tensors = random(), random(MIB // 2)
                gone = [weakref.ref(tensor) for tensor in tensors]
                engine.send(scheduled(*tensors))
                del tensors
                self.assertEqual([ref() for ref in gone], [None, None])
                self.assertFalse([thing for thing in gc.get_objects()
                                  if isinstance(thing, Message)])
            finally:
                gc.enable()

    def test_a_forked_worker_has_nothing_of_the_engines(self):
        with vllm() as (module, log), Engine(module, method="fork") as engine:
            for worker in engine.workers:
                self.assertEqual(worker.call(writes), [])
                worker.end()
            self.assertFalse(engine.writer.closed)
            self.assertEqual(engine.writer.stats()["free"], 3)


if __name__ == "__main__":
    logging.getLogger("vllm").propagate = False
    main()
