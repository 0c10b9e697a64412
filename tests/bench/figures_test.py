#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The arithmetic behind the report, on records whose figures are known."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from figures import (  # noqa: E402
    MIB, TARGETS, Broadcast, all_ratios, judge, line, ratio)

points = 0
failures = 0


def check(name, condition):
    global points, failures
    points += 1
    failures += not condition
    print(f"{'ok' if condition else 'not ok'} {points} - {name}")


def series(contender, readers, mode="pointer", nbytes=200 * MIB, **columns):
    return {"contender": contender, "readers": readers, "bytes": nbytes,
            "mode": mode, **columns}


def contender(name, put, take, gpu, floor=False):
    return {"name": name, "about": "", "floor": floor, "copies_put": put,
            "copies_take": take, "copies_gpu": gpu}


RUN = Broadcast({
    "contenders": [contender("arena", 1, 0, 0), contender("socket", 0, 2, 1),
                   contender("memcpy", 1, 0, 0, True),
                   contender("best copy", 1, 0, 0, True),
                   contender("pinned", 0, 0, 0, True)],
    "series": [
        series("arena", 1, put_ms=[10, 20, 12], end_ms=[11, 21, 13]),
        series("arena", 4, put_ms=[10, 11, 12], end_ms=[20, 30, 40]),
        series("arena", 8, put_ms=[12, 12, 13], end_ms=[50, 50, 50]),
        series("socket", 4, put_ms=[1, 1, 1], end_ms=[80, 240, 119]),
        series("memcpy", 0, put_ms=[10, 10, 8]),
        series("arena", 1, "gpu", put_ms=[5, 5, 5], end_ms=[10, 10, 10],
               use_ms=[4, 5, 4]),
        series("pinned", 1, "gpu", put_ms=[0, 0, 0], end_ms=[4, 4, 4],
               use_ms=[4, 4, 4]),
        series("best copy", 0, "gpu", put_ms=[4, 4, 4]),
    ]})
RATIOS = all_ratios([RUN])


def verdict(key, value):
    return next(t for t in TARGETS if t.key == key).verdict(
        {} if value is None else {key: value})


found = ratio([10, 20, 12], [10, 10, 8])
check("a ratio is of medians, its spread that of the rounds",
      (found.value, found.min, found.max) == (1.2, 1.0, 2.0))
check("a put is compared with the floor of the same rounds",
      RATIOS["put_over_memcpy"] == found)
check("eight readers are compared with one",
      RATIOS["writer_n8_over_n1"].value == 1.0)
check("a peer's time is in the arena's",
      RATIOS["socket_over_arena_n4"].value == 119 / 30
      and "socket_over_arena_n1" not in RATIOS)
check("a rate is the inverse of a time",
      RATIOS["h2d_rate_over_pinned_n1"].value == 1.0
      and RATIOS["h2d_rate_over_pinned_n1"].min == 0.8)
check("the end is compared with the sum of both floors",
      RATIOS["end_over_copy_and_dma_n1"].value == 10 / 8)
check("a verdict does not round in its favour",
      verdict("socket_over_arena_n4", 119 / 30) == "missed"
      and verdict("socket_over_arena_n4", 3.9999) == "missed"
      and verdict("socket_over_arena_n4", 4.0) == "met"
      and verdict("writer_n8_over_n1", 1.0501) == "missed"
      and verdict("writer_n8_over_n1", 1.05) == "met")
check("what was not measured is not met",
      verdict("writer_n8_over_n1", None) == "not measured")
check("targets for a GPU are asked of a machine that has one",
      {t["key"] for t in judge({}, gpu=True)}
      ^ {t["key"] for t in judge({}, gpu=False)}
      == {t.key for t in TARGETS if t.gpu is not None})
check("a least squares line goes through points on a line",
      line([(1, 5), (2, 7), (4, 11)]) == (3, 2))
start, slope = RUN.slope_readers("end_ms", "arena", 200 * MIB, "pointer")
check("the slope is that of the medians",
      abs(slope - 130 / (74 / 3)) < 1e-9
      and abs(start + slope * 13 / 3 - 31) < 1e-9)
check("copies are counted for each byte delivered",
      (RUN.copies("arena", 4, "pointer"), RUN.copies("arena", 4, "gpu"),
       RUN.copies("socket", 4, "pointer"), RUN.copies("socket", 4, "gpu"))
      == (0.25, 0.25, 2, 3))
print(f"1..{points}")
sys.exit(bool(failures))
