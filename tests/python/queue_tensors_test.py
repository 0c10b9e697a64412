#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Tensors and arrays in messages: which way they go, and that they arrive."""

import pickle
import warnings

import numpy
import torch

from harness import HANG_S, MIB, Case, Worker, arena, await_free, main, \
    published
import tensorarena
import tensorarena.torch
from tensorarena.queue import MessageQueue, ends

HOME = "127.0.0.1"


def random(dtype, *shape):
    size = torch.empty(0, dtype=dtype).element_size()
    count = int(numpy.prod(shape)) * size
    data = torch.randint(0, 2 if dtype is torch.bool else 256, (count,),
                         dtype=torch.uint8)
    return data.view(dtype).view(shape)


def raw(tensor):
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8)
                 .numpy())


def facts(tensor):
    return type(tensor), tensor.dtype, tuple(tensor.shape), raw(tensor)


# What workers do.

def join(state, handle, rank):
    state.queue = MessageQueue.create_from_handle(handle, rank)
    state.queue.wait_until_ready(HANG_S)


def see(state):
    """What came, and whether it is in the arena."""
    tensor = state.queue.dequeue(HANG_S)
    shared = tensorarena._core.view_at(tensor.data_ptr()) is not None
    return facts(tensor), shared


def keep(state):
    state.kept = state.queue.dequeue(HANG_S)


def drop(state):
    del state.kept


class Ways(Case):
    """A queue whose reader is this process, with an arena of one slot."""

    def setUp(self):
        self.writer = arena(slots=1, slot_bytes=4 * MIB, seats=1)
        self.queue = MessageQueue(1, 1, arena=self.writer)
        self.reader = MessageQueue.create_from_handle(
            self.queue.export_handle(), 0)
        self.queue.wait_until_ready(HANG_S)

    def tearDown(self):
        super().tearDown()
        self.queue.shutdown()
        self.reader.shutdown()

    def send(self, message):
        """The message, and whether the arena and the socket had a part."""
        used = []
        real = self.queue._writer.local.send

        def spy(frames):
            used.append(len(frames))
            real(frames)

        self.queue._writer.local.send = spy
        self.queue.enqueue(message, HANG_S)
        in_arena = published(self.writer) > 0
        return self.reader.dequeue(HANG_S), in_arena, used

    def test_large_ones_go_through_the_arena(self):
        tensor = random(torch.bfloat16, 1024, 1024)
        seen, in_arena, used = self.send([1, tensor])
        self.assertEqual((in_arena, used), (True, []))
        self.assertEqual(facts(seen[1]), facts(tensor))

    def test_what_the_arena_declines_goes_out_of_band(self):
        for tensor, reason in ((random(torch.float32, 3 * MIB), "oversize"),
                               (random(torch.float32, MIB), "no_slot")):
            held = self.writer.loan(1) if reason == "no_slot" else None
            before = self.writer.declines.get(reason, 0)
            seen, in_arena, used = self.send({"pixels": tensor, "n": 1})
            self.assertEqual((in_arena, used), (False, [2]))
            self.assertEqual(self.writer.declines[reason], before + 1)
            self.assertEqual(facts(seen["pixels"]), facts(tensor))
            del held

    def test_some_in_the_arena_and_some_out_of_band(self):
        tensors = [random(torch.int16, MIB), random(torch.uint8, 2 * MIB),
                   random(torch.uint8, 100)]
        seen, in_arena, used = self.send(tensors)
        self.assertEqual((in_arena, used), (True, [2]))
        self.assertEqual(list(map(facts, seen)), list(map(facts, tensors)))

    def test_small_ones_go_through_the_ring(self):
        tensor = random(torch.float32, 1000)
        seen, in_arena, used = self.send(tensor)
        self.assertEqual((in_arena, used), (False, []))
        self.assertEqual(facts(seen), facts(tensor))

    def test_every_type_crosses_out_of_band(self):
        held = self.writer.loan(1)
        for dtype in tensorarena.torch._NAMES:
            tensor = random(dtype, 2, MIB // 2)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                seen, in_arena, used = self.send(tensor)
            self.assertEqual((in_arena, used), (False, [2]))
            self.assertEqual(facts(seen), facts(tensor))
        del held

    def test_a_parameter_stays_one(self):
        parameter = torch.nn.Parameter(random(torch.float16, MIB),
                                       requires_grad=False)
        for fits in (True, False):
            held = None if fits else self.writer.loan(1)
            seen, in_arena, _ = self.send([parameter, parameter])
            self.assertEqual(in_arena, fits)
            self.assertEqual(facts(seen[0]), facts(parameter))
            self.assertIs(seen[0], seen[1])
            self.assertFalse(seen[0].requires_grad)
            del seen
            tensorarena.attach(self.writer.handle).flush_releases()
            del held
            await_free(self.writer)

    def test_others_are_as_pytorch_has_them(self):
        tensor = torch.arange(512.0 * 1024).view(1024, 512)
        for odd in (tensor.t(), tensor.clone().requires_grad_(),
                    tensor.to_sparse()):
            seen, in_arena, _ = self.send(odd)
            self.assertFalse(in_arena)
            self.assertTrue(torch.equal(
                seen.detach().to_dense() if odd.is_sparse else seen.detach(),
                tensor if odd.is_sparse else odd.detach()))
            self.assertEqual((seen.layout, seen.requires_grad),
                             (odd.layout, odd.requires_grad))

    def test_what_came_out_of_band_may_be_written_to(self):
        held = self.writer.loan(1)
        seen, _, _ = self.send(torch.zeros(MIB))
        seen += 1
        self.assertEqual(int(seen.sum()), MIB)
        del held

    def test_arrays_go_out_of_band_or_as_they_are_on_loan(self):
        array = numpy.arange(MIB, dtype="u4")
        seen, in_arena, used = self.send(array)
        self.assertEqual((in_arena, used), (False, [2]))
        self.assertTrue((seen == array).all())
        loan = self.writer.empty((1000,), numpy.float32)
        loan[:] = 7
        seen, in_arena, used = self.send(loan)
        self.assertEqual((in_arena, used), (True, []))
        self.assertTrue((seen == 7).all())


class Nodes(Case):
    def test_remote_readers_get_the_whole_and_local_ones_the_arena(self):
        for method in ("spawn", "fork"):
            writer = arena(slots=2, slot_bytes=8 * MIB, seats=2)
            made = MessageQueue(4, 2, connect_ip=HOME, arena=writer)
            workers = [Worker(method) for _ in range(4)]
            try:
                for rank, worker in enumerate(workers):
                    worker.start(join, made.export_handle(), rank)
                made.wait_until_ready(HANG_S)
                for worker in workers:
                    worker.result()
                for tensor in (random(torch.float16, 4 * MIB),
                               random(torch.uint8, 9 * MIB)):
                    made.enqueue(tensor, HANG_S)
                    fits = tensor.numel() < 9 * MIB
                    for rank, worker in enumerate(workers):
                        self.assertEqual(
                            worker.call(see),
                            (facts(tensor), fits and rank < 2))
                    await_free(writer)
            finally:
                for worker in workers:
                    worker.kill()
                made.shutdown()

    def test_slots_are_free_when_their_readers_are_killed(self):
        writer = arena(slots=1, slot_bytes=4 * MIB, seats=2)
        made = MessageQueue(2, 2, arena=writer)
        with Worker("spawn") as one, Worker("spawn") as two:
            for rank, worker in enumerate((one, two)):
                worker.start(join, made.export_handle(), rank)
            made.wait_until_ready(HANG_S)
            made.enqueue(random(torch.uint8, 2 * MIB))
            for worker in (one, two):
                worker.result()
                worker.call(keep)
            one.kill()
            self.assertEqual(published(writer), 1)
            two.call(drop)
            await_free(writer)
        made.shutdown()


class Same(Case):
    def frames_of(self, messages, **options):
        made = MessageQueue(1, 1, **options)
        reader = MessageQueue.create_from_handle(made.export_handle(), 0)
        made.wait_until_ready(HANG_S)
        real, ends.load = ends.load, lambda frames: list(map(bytes, frames))
        try:
            seen = []
            for message in messages:
                made.enqueue(message, HANG_S)
                seen.append(reader.dequeue(HANG_S))
            return seen
        finally:
            ends.load = real

    def test_frames_are_the_same_with_an_arena_that_declines(self):
        parameter = torch.nn.Parameter(torch.ones(MIB), requires_grad=False)
        messages = [torch.ones(10), torch.ones(MIB), parameter,
                    numpy.ones(MIB), [torch.ones(4, 5).t(), {"a": 1}]]
        writer = arena(slots=1, slot_bytes=4096, seats=1)
        with_arena = self.frames_of(messages, arena=writer)
        self.assertEqual(with_arena, self.frames_of(messages))
        self.assertEqual([len(frames) for frames in with_arena],
                         [1, 2, 2, 2, 1])
        self.assertEqual(with_arena[0], [pickle.dumps(messages[0], 5)])


if __name__ == "__main__":
    main()
