#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An engine and four workers, each of which needs every request's image.

    make python
    PYTHONPATH=build/python python3 examples/engine_and_workers.py

The engine copies an image once, into a slot that all workers look at in place;
its ticket goes to them over pipes.  What the arena declines goes over the pipes
itself.
"""

import math
import multiprocessing
import random
import sys
import zlib

import tensorarena

try:
    import torch
    import tensorarena.torch

    gpus = torch.cuda.device_count()
except ImportError:
    gpus = 0

WORKERS = 4
SLOT_BYTES = 16 << 20
SHAPES = [(1080, 1920, 3), (720, 1280, 3), (2160, 3840, 3), (480, 640, 3)]


def worker(number, handle, pipe):
    if gpus:
        torch.cuda.set_device(number % gpus)
    reader = tensorarena.Reader(handle)  # maps all slots, read-only
    for request, image, checksum in iter(pipe.recv, None):
        if isinstance(image, tensorarena.Ticket):
            image = reader.view(image)  # no copy
            if gpus:  # from pinned memory: the slot waits until it is done
                tensor = tensorarena.torch.as_tensor(image)
                on_gpu = tensor.to("cuda", non_blocking=True)
                assert torch.equal(on_gpu.cpu(), tensor)
        assert zlib.crc32(image) == checksum
        print(f"worker {number}: request {request} is intact", flush=True)
        image = tensor = None  # the last to share the slot's memory frees it


def main():
    context = multiprocessing.get_context("spawn")
    writer = tensorarena.Writer(slots=4, slot_bytes=SLOT_BYTES, seats=WORKERS)
    print(f"{writer.engine} engine, {WORKERS} workers, {gpus} GPUs")
    pipes, processes = [], []
    for number in range(WORKERS):
        pipe, theirs = context.Pipe()
        process = context.Process(target=worker,
                                  args=(number, writer.handle, theirs),
                                  daemon=True)
        process.start()
        theirs.close()
        pipes.append(pipe)
        processes.append(process)

    for request, shape in enumerate(SHAPES):
        image = random.randbytes(math.prod(shape))
        ticket = writer.put(image, "u8", shape)  # never waits
        way = (f"through slot {ticket.slot}" if ticket else
               f"through the pipes, declined: {writer.last_decline}")
        print(f"request {request}: {len(image)} bytes {way}", flush=True)
        for pipe in pipes:
            pipe.send((request, ticket or image, zlib.crc32(image)))

    for pipe, process in zip(pipes, processes):
        pipe.send(None)
        process.join()
    return any(process.exitcode for process in processes)


if __name__ == "__main__":
    sys.exit(main())
