#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors in arenas on their way to a GPU, with whatever PyTorch is here.

TENSORARENA_PYTHON may name where the package is; build/python else.
"""

import gc
import io
import pickle
import subprocess
import sys
import time

from harness import HERE, Case, Worker, arena, await_free, await_true, main, \
    pair, published
import tensorarena

try:
    import torch

    WHY = None if torch.cuda.is_available() else "PyTorch sees no GPU"
except ImportError:
    WHY = "there is no PyTorch here"
if WHY:
    print(f"1..0 # SKIP {WHY}")
    sys.exit(0)

import tensorarena.torch  # noqa: E402
from tensorarena.torch import ArenaPickler  # noqa: E402

NBYTES = 64 << 20
# A copy from a slot may be so much slower than one from PyTorch's own pinned
# memory, in the same run; one from memory that is not pinned is several times.
SLOWER = 1.25
# Cycles of the GPU's clock: long enough to see what waits for it.
LONG = 300_000_000


def message_of(writer, tensor):
    file = io.BytesIO()
    pickler = ArenaPickler(file, writer, min_bytes=1)
    pickler.dump(tensor)
    assert pickler.commit()
    return file.getvalue()


def random_bytes(nbytes=NBYTES):
    return torch.randint(0, 256, (nbytes,), dtype=torch.uint8)


def seconds_of(tensor, target):
    """The best of some copies to the GPU."""
    best = float("inf")
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        begin.record()
        target.copy_(tensor, non_blocking=True)
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) / 1000)
    return best


def can_be_copied(dtype):
    try:
        torch.empty(16, dtype=dtype).to("cuda")
    except (NotImplementedError, RuntimeError):
        return False
    return True


class BeforeCuda(Case):
    """Comes first: no test of another class has initialised CUDA yet."""

    def test_nothing_here_initialises_cuda(self):
        writer, reader = pair(slot_bytes=NBYTES)
        seen = pickle.loads(message_of(writer, random_bytes()))
        self.assertEqual(seen.numel(), NBYTES)
        del seen
        reader.flush_releases()
        await_free(writer)
        self.assertFalse(torch.cuda.is_initialized())
        self.assertEqual(reader.stats()["cuda"]["pins"], 0)


class Copies(Case):
    def setUp(self):
        torch.cuda.init()
        torch.zeros(1, device="cuda")

    def test_a_tensor_in_a_slot_is_pinned(self):
        writer, reader = pair(slot_bytes=NBYTES)
        seen = pickle.loads(message_of(writer, random_bytes()))
        self.assertTrue(seen.is_pinned())
        self.assertTrue(seen[5:].is_pinned())
        self.assertEqual(seen.pin_memory().data_ptr(), seen.data_ptr())
        self.assertEqual(reader.stats()["cuda"]["pinned_slots"], 1)
        self.assertGreater(reader.stats()["cuda"]["pin_ns"], 0)

    def test_it_is_copied_at_the_speed_of_pinned_memory(self):
        writer, reader = pair(slot_bytes=NBYTES)
        source = random_bytes()
        target = torch.empty(NBYTES, dtype=torch.uint8, device="cuda")
        seen = pickle.loads(message_of(writer, source))
        from_slot = seconds_of(seen, target)
        from_pinned = seconds_of(source.pin_memory(), target)
        from_pageable = seconds_of(source, target)
        print(f"# GB/s: slot {NBYTES / from_slot / 1e9:.1f}, pinned "
              f"{NBYTES / from_pinned / 1e9:.1f}, pageable "
              f"{NBYTES / from_pageable / 1e9:.1f}")
        self.assertLess(from_slot, from_pinned * SLOWER)
        self.assertTrue(torch.equal(seen.to("cuda").cpu(), source))

    def test_every_type_arrives_byte_for_byte(self):
        writer, reader = pair()
        names = sorted(map(str, tensorarena.torch._NAMES))
        print("#", *names)
        self.assertIn("torch.float8_e4m3fn", names)
        for dtype in tensorarena.torch._NAMES:
            if not can_be_copied(dtype):
                print(f"# PyTorch does not copy {dtype} to the GPU")
                continue
            with self.subTest(dtype=dtype):
                size = torch.empty(0, dtype=dtype).element_size()
                source = random_bytes(1024 * size)
                if dtype is torch.bool:
                    source &= 1
                seen = pickle.loads(message_of(writer, source.view(dtype)))
                there = seen.to("cuda", non_blocking=True)
                self.assertEqual(there.dtype, dtype)
                self.assertTrue(torch.equal(there.view(torch.uint8).cpu(),
                                            source))
                del seen
                reader.flush_releases()

    def hold_and_copy(self, writer, stream):
        """A copy that waits behind a long kernel, and a tensor that is gone
        before it has begun."""
        source = random_bytes()
        target = torch.zeros(NBYTES, dtype=torch.uint8, device=stream.device)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            seen = pickle.loads(message_of(writer, source))
            torch.cuda._sleep(LONG)
            target.copy_(seen, non_blocking=True)
        return source, target, seen

    def check(self, writer, reader, stream, source, target):
        self.assertGreaterEqual(reader.flush_releases(), 1)
        self.assertFalse(stream.query(), "the kernel was too short")
        self.assertEqual(published(writer), 1)
        self.assertIsNone(writer.put(b"x"))
        self.assertEqual(writer.last_decline, "no_slot")
        await_free(writer)
        self.assertTrue(stream.query())
        self.assertTrue(torch.equal(target.cpu(), source))

    def test_no_slot_is_used_again_before_the_copy_ends(self):
        for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
            writer, reader = pair(slots=1, slot_bytes=NBYTES)
            source, target, seen = self.hold_and_copy(writer, stream)
            del seen
            self.check(writer, reader, stream, source, target)

    def test_nor_when_only_a_slice_was_left(self):
        writer, reader = pair(slots=1, slot_bytes=NBYTES)
        stream = torch.cuda.Stream()
        source, target, seen = self.hold_and_copy(writer, stream)
        part = seen[10:20]
        del seen
        self.assertEqual(reader.flush_releases(), 0)
        del part
        self.check(writer, reader, stream, source, target)

    def test_a_stream_that_was_not_current_is_named(self):
        writer, reader = pair(slots=1, slot_bytes=NBYTES)
        source = random_bytes()
        seen = pickle.loads(message_of(writer, source))
        stream = torch.cuda.Stream()
        target = torch.zeros(NBYTES, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LONG)
            target.copy_(seen, non_blocking=True)
        self.assertTrue(tensorarena.torch.record_stream(seen, stream))
        self.assertFalse(tensorarena.torch.record_stream(source, stream))
        del seen
        self.check(writer, reader, stream, source, target)

    def test_the_default_stream_is_of_the_device_in_use(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        torch.zeros(1, device="cuda:0")
        writer, reader = pair(slots=1, slot_bytes=NBYTES)
        with torch.cuda.device(1):
            stream = torch.cuda.default_stream(1)
            source, target, seen = self.hold_and_copy(writer, stream)
        del seen
        self.check(writer, reader, stream, source, target)

    def test_many_tensors_through_two_slots_keep_their_bytes(self):
        writer, reader = pair(slots=2, slot_bytes=4 << 20)
        sent = []
        for number in range(300):
            source = torch.full((1 << 20,), number, dtype=torch.int32)
            await_true(lambda: writer.stats()["free"])
            seen = pickle.loads(message_of(writer, source))
            sent.append(seen.to("cuda", non_blocking=True))
            del seen
            if len(sent) == 20:
                for ago, there in enumerate(reversed(sent)):
                    self.assertTrue((there == number - ago).all().item())
                sent.clear()
        self.assertEqual(writer.declines, {})
        self.assertGreater(reader.stats()["cuda"]["pins"], 0)
        self.assertEqual(reader.stats()["cuda"]["errors"], 0,
                         reader.stats()["cuda"]["error_text"])

    def test_a_capture_in_the_way_only_puts_off_the_release(self):
        writer, reader = pair(slots=1, slot_bytes=NBYTES)
        # The slot is pinned here, which a capture is no time for.
        pickle.loads(message_of(writer, random_bytes()))
        await_free(writer)
        graph, other = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            seen = pickle.loads(message_of(writer, random_bytes()))
            del seen
            other += 1
            time.sleep(0.02)
            reader.flush_releases()
            self.assertEqual(published(writer), 1)
        await_free(writer)
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(other[0].item(), 1)

    def test_dlpack_by_pytorchs_own_way(self):
        writer, reader = pair(writable=True)
        view = reader.view(writer.put(bytes(64), "f32", (4, 4)))
        seen = torch.from_dlpack(view)
        self.assertEqual((seen.dtype, tuple(seen.shape)),
                         (torch.float32, (4, 4)))
        writer, reader = pair()
        view = reader.view(writer.put(bytes(64), "f32", (4, 4)))
        try:
            seen = torch.from_dlpack(view)
            print("# takes read-only memory by DLPack")
        except BufferError:
            print("# refuses read-only memory by DLPack")

    def test_ends_cleanly_with_copies_under_way(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]);"
                "import gpu_test; gpu_test.leave_in_a_hurry()")
        done = subprocess.run([sys.executable, "-B", "-c", code, HERE],
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, b"alive\n"))


def leave_in_a_hurry():
    """Everything is alive, copies are under way, and this returns."""
    global left
    writer, reader = pair(slots=2, slot_bytes=NBYTES)
    seen = pickle.loads(message_of(writer, random_bytes()))
    torch.cuda.init()
    again = pickle.loads(message_of(writer, random_bytes()))
    torch.cuda._sleep(LONG)
    there = seen.to("cuda", non_blocking=True), again.to("cuda",
                                                         non_blocking=True)
    del seen
    left = writer, reader, again, there
    print("alive", flush=True)


# What workers do.

def attach(state, handle, device):
    torch.cuda.set_device(device)
    torch.zeros(1, device="cuda")
    state.reader = tensorarena.Reader(handle)


def check(state, message, total):
    seen = pickle.loads(message)
    pinned = seen.is_pinned()
    there = seen.to("cuda", non_blocking=True)
    del seen
    return pinned and there.sum(dtype=torch.int64).item() == total


class Processes(Case):
    def test_an_engine_without_a_gpu_and_four_workers_with(self):
        writer = arena(slots=2, slot_bytes=NBYTES, seats=4)
        workers = [Worker("spawn") for _ in range(4)]
        try:
            for number, worker in enumerate(workers):
                worker.start(attach, writer.handle,
                             number % torch.cuda.device_count())
            for worker in workers:
                worker.result()
            for _ in range(5):
                source = random_bytes()
                total = source.sum(dtype=torch.int64).item()
                message = message_of(writer, source)
                for worker in workers:
                    worker.start(check, message, total)
                self.assertEqual([w.result() for w in workers], [True] * 4)
                await_free(writer)
        finally:
            for worker in workers:
                worker.kill()
        gc.collect()


if __name__ == "__main__":
    main()
