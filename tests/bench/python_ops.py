#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What the Python package costs, beside the C library in the same run.

Figures for people, not a test.  Prints JSON; times are in microseconds.
"""

import copyreg
import io
import json
import os
import pickle
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, "..", "..", "build")
sys.path.insert(0, os.environ.get("TENSORARENA_PYTHON",
                                  os.path.join(BUILD, "python")))

import tensorarena  # noqa: E402
from c_library import Library  # noqa: E402
from tensorarena.pickling import ArenaPickler  # noqa: E402

ENGINE = os.environ.get("TENSORARENA_TEST_ENGINE", "auto")
NBYTES = 199_000_000
ROUNDS = 15


def us_of(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def large():
    """One large tensor, put by each in turn."""
    source = bytearray(os.urandom(1 << 20) * 190)[:NBYTES]
    library = Library(NBYTES, ENGINE)
    writer = tensorarena.Writer(1, NBYTES, 1, engine=ENGINE)
    reader = tensorarena.Reader(writer.handle)
    times = {"C": [], "put": []}
    pickled = None
    try:
        import torch
        from tensorarena.torch import ArenaPickler as TensorPickler

        tensor = torch.frombuffer(source, dtype=torch.uint8)
        times["tensor_pickled"] = []

        def pickled():
            pickler = TensorPickler(io.BytesIO(), writer)
            pickler.dump({"pixel_values": tensor})
            assert pickler.commit()
    except ImportError:
        pass

    def release():
        reader.next(10).release()
        reader.flush_releases()

    # The first rounds build the slots.
    for number in range(-2, ROUNDS):
        rounds = [("C", lambda: library.put(source), library.release),
                  ("put", lambda: writer.put(source), release)]
        if pickled:
            rounds.append(("tensor_pickled", pickled, release))
        # Each comes first as often as the others.
        turn = number % len(rounds)
        for name, put, done in rounds[turn:] + rounds[:turn]:
            took = us_of(put)
            done()
            if number >= 0:
                times[name].append(took)
    return {"nbytes": NBYTES,
            "median_us": {name: statistics.median(t)
                          for name, t in times.items()},
            "best_us": {name: min(t) for name, t in times.items()},
            "speed_of_C_by_best": {name: min(times["C"]) / min(t)
                                   for name, t in times.items()}}


def small():
    """Single calls, on a slot of one page."""
    writer = tensorarena.Writer(2, 4096, 1, engine=ENGINE)
    reader = tensorarena.Reader(writer.handle)
    data = bytes(4096)
    times = {"put": [], "view": [], "release": [], "flush_releases": []}
    for _ in range(2000):
        box = []
        times["put"].append(us_of(lambda: box.append(writer.put(data))))
        times["view"].append(us_of(lambda: box.append(reader.view(box[0]))))
        times["release"].append(us_of(lambda: box.pop()))
        times["flush_releases"].append(us_of(reader.flush_releases))
    return {name: statistics.median(t) for name, t in times.items()}


class _Request:
    """Something of the kind that a scheduler sends."""

    def __init__(self, number):
        self.id = f"request-{number}"
        self.tokens = list(range(50))
        self.blocks = (list(range(10)), [number])
        self.sampling = {"temperature": 0.7, "stop": None}


def message():
    """A message without large tensors, pickled with and without an arena; by
    queues whose tensors go out of band by a dispatch_table, too."""
    writer = tensorarena.Writer(1, 4096, 1, engine=ENGINE)
    body = {"requests": [_Request(n) for n in range(32)], "step": 5}

    table = copyreg.dispatch_table.copy()

    def plain():
        pickle.Pickler(io.BytesIO(), 5).dump(body)

    def plain_with_table():
        pickler = pickle.Pickler(io.BytesIO(), 5)
        pickler.dispatch_table = table
        pickler.dump(body)

    def arena():
        pickler = ArenaPickler(io.BytesIO(), writer)
        pickler.dump(body)
        pickler.commit()

    def arena_with_table():
        pickler = ArenaPickler(io.BytesIO(), writer, dispatch_table=table)
        pickler.dump(body)
        pickler.commit()

    file = io.BytesIO()
    one = ArenaPickler(file, writer, dispatch_table=table)

    def one_for_all_with_table():
        file.seek(0)
        file.truncate()
        one.begin()
        one.dump(body)
        one.commit()

    calls = (plain, plain_with_table, arena, arena_with_table,
             one_for_all_with_table)
    times = {call.__name__: [] for call in calls}
    for _ in range(3000):
        for call in calls:
            times[call.__name__].append(us_of(call))
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    engine = tensorarena.Writer(1, 4096, engine=ENGINE).engine
    print(json.dumps({"engine": engine, "python": sys.version.split()[0],
                      "large": large(), "small_median_us": small(),
                      "message_median_us": message()}, indent=4))


main()
