#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the message queue costs with an arena and without, in the same run.

Figures for people, not a test; prints JSON.  Whoever is compared takes turns,
and a second queue without an arena says how much of a difference is chance.
Needs PyTorch and pyzmq.
"""

import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "..", "build")
sys.path.insert(0, os.environ.get("TENSORARENA_PYTHON",
                                  os.path.join(BUILD, "python")))

import torch  # noqa: E402
import zmq  # noqa: E402
import tensorarena  # noqa: E402
from c_library import Library  # noqa: E402
from tensorarena.queue import MessageQueue  # noqa: E402

ENGINE = os.environ.get("TENSORARENA_TEST_ENGINE", "auto")
NBYTES = 199_000_000
ROUNDS = 25
SMALL_ROUNDS = int(os.environ.get("ROUNDS", "5000"))


class Pair:
    """A queue and its reader, both of this process."""

    def __init__(self, arena=None):
        self.queue = MessageQueue(1, 1, arena=arena)
        self.reader = MessageQueue.create_from_handle(
            self.queue.export_handle(), 0)
        self.queue.wait_until_ready()
        self.reader.wait_until_ready()
        self.enqueue = self.queue.enqueue

    def us_of_enqueue(self, message):
        start = time.perf_counter_ns()
        self.enqueue(message)
        took = time.perf_counter_ns() - start
        self.reader.dequeue()
        return took / 1000

    def close(self):
        self.reader.shutdown()
        self.queue.shutdown()


class _Request:
    """Something of the kind that a scheduler sends."""

    def __init__(self, number):
        self.id = f"request-{number}"
        self.tokens = list(range(50))
        self.blocks = (list(range(10)), [number])
        self.sampling = {"temperature": 0.7, "stop": None}


MESSAGES = {
    "a step": {"step": 1},
    "32 requests": {"requests": [_Request(n) for n in range(32)]},
    "32 requests and 4 small tensors": {
        "requests": [_Request(n) for n in range(32)],
        "tensors": [torch.zeros(100) for _ in range(4)]},
}


def small():
    writer = tensorarena.Writer(1, 1 << 21, 1, engine=ENGINE)
    pairs = {"without": Pair(), "with": Pair(writer), "again without": Pair()}
    result = {}
    for name, message in MESSAGES.items():
        times = {kind: [] for kind in pairs}
        for n in range(SMALL_ROUNDS):
            for kind in sorted(pairs, reverse=n % 2):
                times[kind].append(pairs[kind].us_of_enqueue(message))
        median = {kind: statistics.median(t) for kind, t in times.items()}
        result[name] = {
            "median_us": median,
            "ratio": median["with"] / median["without"],
            "chance": median["again without"] / median["without"]}
    for pair in pairs.values():
        pair.close()
    return result


def large():
    source = bytearray(os.urandom(1 << 20)) * (NBYTES // (1 << 20) + 1)
    del source[NBYTES:]
    tensor = torch.frombuffer(source, dtype=torch.uint8)
    library = Library(NBYTES, ENGINE)
    writer = tensorarena.Writer(1, NBYTES, 1, engine=ENGINE)
    pair = Pair(writer)
    attached = tensorarena.attach(writer.handle)
    times = {"library": [], "queue": []}
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        library.put(source)
        times["library"].append(time.perf_counter_ns() - start)
        library.release()
        times["queue"].append(pair.us_of_enqueue(tensor) * 1000)
        attached.flush_releases()
    if writer.declines:
        sys.exit(f"queue_ops: the arena declined: {writer.declines}")
    # The first round builds the slots.
    rates = {kind: NBYTES / statistics.median(t[1:]) for kind, t in
             times.items()}
    pair.close()
    return {"bytes": NBYTES, "GB/s": rates,
            "ratio": rates["queue"] / rates["library"]}


def main():
    engine = tensorarena.Writer(1, 4096, engine=ENGINE).engine
    print(json.dumps({
        "engine": engine, "python": sys.version.split()[0],
        "torch": torch.__version__, "pyzmq": zmq.__version__,
        "processors": len(os.sched_getaffinity(0)),
        "enqueue_small": small(), "enqueue_large": large()}, indent=4))


main()
