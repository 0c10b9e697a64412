#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The arena that a queue of vLLM's is given, beside one of vLLM's own, and what
it tells.  VLLM_TREE=/path/to/vllm runs the same on the queue of that."""

import logging
import os
import pickle
import tempfile

import prometheus_client
import torch

import harness
from harness import MIB, Case, main
import tensorarena
import tensorarena.vllm
from vllm_engine import SHAPES, Engine, places, random, scheduled, seen, \
    vllm, without_places

OWN_ARENA = {"enable_shm_tensor_arena": True}


def has_own_arena(module):
    return hasattr(module, "ShmTensorArena")


class OwnArena(Case):
    """Where vLLM has an arena of its own."""

    def module(self, module):
        if not has_own_arena(module):
            self.skipTest("this vLLM has no arena of its own")
        # As large as these tests need it.
        if hasattr(module, "_ARENA_SLOT_BYTES"):
            module._ARENA_SLOT_BYTES = 16 * MIB
            module._ARENA_SLOTS = 2
        return module

    def test_it_is_not_made_where_it_is_replaced(self):
        with vllm(SHAPES[-1]) as (module, log), \
                Engine(self.module(module), **OWN_ARENA) as engine:
            self.assertIsNone(engine.queue.tensor_arena)
            self.assertEqual(places(engine.send(scheduled(random()))[0]),
                             [True, False])

    def test_it_is_made_where_ours_cannot_be(self):
        with vllm(SHAPES[-1], _SLOTS=256, _SLOT_MB=1 << 20) as (module, log):
            queue = self.module(module).MessageQueue(2, 2, **OWN_ARENA)
            self.assertIs(type(queue.tensor_arena), module.ShmTensorArena)

    def test_its_class_can_be_exchanged_for_ours(self):
        with vllm(SHAPES[-1], **{"": None}) as (module, log):
            self.module(module).ShmTensorArena = \
                tensorarena.vllm.ShmTensorArena
            with Engine(module, **OWN_ARENA) as engine:
                arena = engine.queue.tensor_arena
                for message, expected in (
                        (scheduled(random(8 * MIB)), [True, False]),
                        (scheduled(random(17 * MIB)), [False, False])):
                    for got in engine.send(message):
                        self.assertEqual(without_places(got),
                                         without_places(seen(message)))
                        self.assertEqual(places(got), expected)
                    harness.await_free(arena.writer)
                self.assertEqual(arena.writer.stats()["puts"], 1)

    def test_our_class_has_its_shape(self):
        arena = tensorarena.vllm.ShmTensorArena(1, 2 * MIB, 3,
                                                engine=harness.ENGINE)
        self.assertEqual(arena.total_bytes, 6 * MIB)
        self.assertTrue(arena.is_creator)
        reader = tensorarena.vllm.ShmTensorArena(*arena.handle(),
                                                 reader_rank=0)
        self.assertFalse(reader.is_creator)
        self.assertEqual(reader.handle(), arena.handle())
        tensor = random()
        where = pickle.loads(pickle.dumps(arena.write_tensor(tensor)))
        got = reader.get_tensor(where, MIB, tensor.dtype, tensor.shape)
        self.assertEqual(seen(got), (seen(tensor)[0], True))
        reader.schedule_release(got, where)
        kept = got[1:]
        del got
        reader.flush_releases()
        self.assertEqual(harness.published(arena.writer), 1)
        del kept
        reader.flush_releases()
        harness.await_free(arena.writer)
        with self.assertRaises(tensorarena.StaleTicket):
            reader.get_tensor(where)
        self.assertIsNone(arena.write_tensor(torch.zeros(0)))
        arena.flush_releases()
        with self.assertRaises(TypeError):
            reader.write_tensor(tensor)
        with self.assertRaises(TypeError):
            arena.get_tensor(where)


class Around(Case):
    def test_prometheus_gets_the_arena_of_each_queue(self):
        with vllm() as (module, log), Engine(module) as engine:
            engine.send(scheduled(random(3 * MIB), random()))
            text = prometheus_client.generate_latest().decode()
            number = engine.outlet.number
            for name, more, value in (
                    ("declined_total", 'queue="%d",reason="oversize"', 1),
                    ("puts_total", 'queue="%d"', 1)):
                line = f"tensorarena:{name}{{{more % number}}} {value}.0"
                self.assertIn(line, text.splitlines())

    def test_a_socket_in_a_folder_is_listened_on_and_removed(self):
        if harness.ENGINE != "embedded":
            self.skipTest("only the embedded engine has one")
        with tempfile.TemporaryDirectory() as folder, \
                vllm(_SOCKET_DIR=folder) as (module, log):
            with Engine(module) as engine:
                self.assertEqual(len(os.listdir(folder)), 1)
                self.assertEqual(places(engine.send(scheduled(random()))[0]),
                                 [True, False])
            del engine.queue.tensorarena, engine
            # A call of the package does what deallocation has left to do.
            other = harness.arena()
            harness.await_true(lambda: other.stats() and
                               not os.listdir(folder))


if __name__ == "__main__":
    logging.getLogger("vllm").propagate = False
    main()
