#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests with images, as they arrive at an engine, with an arena and without.

The engine takes them one by one, as they arrive: it sends an image to all
readers through a message queue and waits for all of them.  A reader copies the
image to its GPU, or without one into memory of its own, and its encoder, which
is a sleep, so that readers who share a GPU do not wait for each other's, takes
--encoder-ms.  Both queues have the same readers, arrivals and images.

TTFT is the time from a request's arrival until the last reader's encoder is
done.  A GPU's idle gap is how long its encoder did nothing though the request
had arrived.  Prints JSON.  Without an arena images are sent from where they are,
without a copy.  Needs PyTorch and pyzmq.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get(
    "TENSORARENA_PYTHON",
    os.path.join(HERE, "..", "..", "build", "python")))

import torch  # noqa: E402
import zmq  # noqa: E402
import tensorarena  # noqa: E402
from tensorarena.queue import MessageQueue  # noqa: E402

ENGINE = os.environ.get("TENSORARENA_TEST_ENGINE", "auto")
# Nobody answers in so long: something is wrong.
HANG_S = 120
WAYS = "without", "with"


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--readers", default="2,4,8",
                        help="numbers of readers (%(default)s)")
    parser.add_argument("--images", type=int, default=80,
                        help="requests in a replay (%(default)s)")
    parser.add_argument("--rate", type=float, default=2.5,
                        help="requests a second (%(default)s)")
    parser.add_argument("--sizes", default="16,32,64,128,199",
                        help="of images, in MB, equally often (%(default)s)")
    parser.add_argument("--encoder-ms", type=float, default=80,
                        help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    return parser.parse_args()


def now():
    """Comparable between processes."""
    return time.monotonic()


# ---- a reader ----

class Device:
    """Where images are copied to."""

    def __init__(self, number):
        self.number = number
        if number is not None:
            torch.cuda.set_device(number)
        self.room = {}

    def take(self, image):
        """Until it is there."""
        room = self.room.get(image.numel())
        if room is None:
            room = self.room[image.numel()] = torch.empty_like(
                image, device="cpu" if self.number is None else "cuda")
        room.copy_(image, non_blocking=True)
        if self.number is not None:
            torch.cuda.synchronize()
        return room


def read(handles, rank, pipe, device, encoder_s):
    device = Device(device)
    queues = {way: MessageQueue.create_from_handle(handle, rank)
              for way, handle in handles.items()}
    for queue in queues.values():
        queue.wait_until_ready(HANG_S)
    while True:
        try:
            way, messages = pipe.recv()
        except EOFError:
            return
        for _ in range(messages):
            number, image = queues[way].dequeue(HANG_S)
            room = device.take(image)
            del image
            began = now()
            time.sleep(encoder_s)
            ended = now()
            pipe.send((number, began, ended, int(room[0]), int(room[-1])))


# ---- the engine ----

class Engine:
    def __init__(self, readers, args, images):
        self.images = images
        largest = max(image.numel() for image in images)
        self.writer = tensorarena.Writer(2, largest, readers, engine=ENGINE)
        self.queues = {
            "without": MessageQueue(readers, readers, copy=False),
            "with": MessageQueue(readers, readers, arena=self.writer)}
        handles = {way: queue.export_handle()
                   for way, queue in self.queues.items()}
        gpus = 0 if args.cpu else torch.cuda.device_count()
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(readers):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=read, daemon=True,
                args=(handles, rank, theirs, rank % gpus if gpus else None,
                      args.encoder_ms / 1000))
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        for queue in self.queues.values():
            queue.wait_until_ready(HANG_S)

    def step(self, way, number):
        """Sends an image; when it was sent, and each reader's times."""
        image = self.images[number % len(self.images)]
        start = now()
        self.queues[way].enqueue((number, image), HANG_S)
        sent = now() - start
        times = []
        for pipe in self.pipes:
            if not pipe.poll(HANG_S):
                sys.exit("replay: a reader does not answer")
            answer, began, ended, first, last = pipe.recv()
            if (answer, first, last) != (number, int(image[0]),
                                         int(image[-1])):
                sys.exit("replay: a reader got something else")
            times.append((began, ended))
        return sent, times

    def replay(self, way, arrivals, order):
        for pipe in self.pipes:
            pipe.send((way, len(self.images) * 2 + len(arrivals)))
        # Slots are built and pinned, and rooms made.
        for number in range(len(self.images) * 2):
            self.step(way, number)
        declined = sum(self.writer.declines.values())
        begin = now()
        steps = []
        for arrival, which in zip(arrivals, order):
            arrived = begin + arrival
            time.sleep(max(0, arrived - now()))
            steps.append((arrived, *self.step(way, which)))
        # Slots are free again before the readers' next message, or nearly.
        return steps, sum(self.writer.declines.values()) - declined

    def end(self):
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(HANG_S)
        for queue in self.queues.values():
            queue.shutdown()


def quantiles(seconds):
    """In milliseconds."""
    ordered = sorted(seconds)

    def at(part):
        return round(1000 * ordered[min(len(ordered) - 1,
                                        int(part * len(ordered)))], 2)

    return {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)}


def gaps(steps, reader):
    """A reader's idle gap before each image."""
    before = 0
    for arrived, _, times in steps:
        began, ended = times[reader]
        yield began - max(before, arrived)
        before = ended


def summary(steps, declined):
    ttft = [max(ended for _, ended in times) - arrived
            for arrived, _, times in steps]
    idle = [gap for reader in range(len(steps[0][2]))
            for gap in gaps(steps, reader)]
    return {"ttft_ms": quantiles(ttft), "over_1s": sum(t > 1 for t in ttft),
            "idle_gap_ms": {"mean": round(1000 * statistics.mean(idle), 2),
                            **quantiles(idle)},
            "enqueue_ms": quantiles([sent for _, sent, _ in steps]),
            "declined": declined}


def main():
    args = parse()
    chance = random.Random(args.seed)
    sizes = [int(float(size) * 1e6) for size in args.sizes.split(",")]
    images = [torch.full((size,), n + 1, dtype=torch.uint8)
              for n, size in enumerate(sizes)]
    arrivals, at = [], 0.0
    for _ in range(args.images):
        at += chance.expovariate(args.rate)
        arrivals.append(at)
    order = [chance.randrange(len(images)) for _ in range(args.images)]
    results = {}
    for readers in map(int, args.readers.split(",")):
        engine = Engine(readers, args, images)
        results[readers] = {
            way: summary(*engine.replay(way, arrivals, order))
            for way in WAYS}
        results[readers]["engine"] = engine.writer.engine
        engine.end()
    cuda = torch.cuda.is_available() and not args.cpu
    print(json.dumps({
        "options": vars(args), "requests_s": round(args.images / at, 2),
        "gpus": [torch.cuda.get_device_name(n) for n in
                 range(torch.cuda.device_count())] if cuda else [],
        "processors": len(os.sched_getaffinity(0)),
        "python": sys.version.split()[0], "torch": torch.__version__,
        "pyzmq": zmq.__version__, "readers": results}, indent=4))


if __name__ == "__main__":
    main()
