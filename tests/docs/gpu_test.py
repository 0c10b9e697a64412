#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The figures of docs/gpu.md are those of the records that it names."""

import json
import os
import re

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
RESULTS = "docs/results/"


def record(name):
    """A record, without what a log says after it."""
    with open(RESULTS + name, encoding="utf-8") as file:
        return json.JSONDecoder().raw_decode(file.read())[0]


def figures_of(text):
    """Numbers, and by how much each may be off: half of its last digit."""
    for number in re.findall(r"\d+(?:\.\d+)?", text):
        digits = len(number.partition(".")[2])
        yield float(number), 0.501 * 10 ** -digits


def wrong(text, figures):
    """Why a text does not give these figures, or None."""
    told = list(figures_of(text))
    if len(told) == len(figures) and all(
            abs(number - figure) <= off
            for (number, off), figure in zip(told, figures)):
        return None
    return f"the record has {figures}, the text: {text.strip()}"


with open("docs/gpu.md", encoding="utf-8") as document:
    LINES = document.read().splitlines()
PROSE = " ".join(LINES)


def check_row(start, figures):
    """The row that begins so has these figures in its other cells."""
    rows = [line for line in LINES if line.startswith("| " + start)]
    if len(rows) != 1:
        return f"{len(rows)} rows begin with '{start}'"
    cells = rows[0].split("|", 2)[2]
    return wrong(re.sub(r" 99%|\b\d+ MiB", "", cells), figures)


def check_sentence(pattern, figures):
    """What the groups of the pattern match are these figures."""
    match = re.search(pattern, PROSE)
    return wrong(match[1], figures) if match else f"no '{pattern}'"


def idle(bench, what, part="p50"):
    return [bench[f"idle_{size}MiB"][what][part] for size in (1, 32, 204)]


def sums(bench, *what):
    return [sum(both) for both in zip(*(idle(bench, each) for each in what))]


def notice(bench, *keys):
    return [bench["idle_notice_32MiB"][way][key]
            for key in keys for way in ("poll", "host", "block")]


def way_row(bench, way):
    return [bench["idle_notice_32MiB"][way][key] for key in (
        "late_us_median", "late_us_p99", "caller_cpu_us", "helper_cpu_us")]


def tests():
    two, one = (record(f"gpu-bench-{n}xH200.json") for n in (2, 1))
    free = "slot_free_after_dma_us"
    yield "how the end is noticed", [
        check_row("a thread queries", way_row(two, "poll")),
        check_row("a host function", way_row(two, "host")),
        check_row("a thread waits", way_row(two, "block")),
        check_sentence(r"late by (.*?) in 99%",
                       notice(one, "late_us_median", "late_us_p99"))]

    h2d, pin = two["h2d_204MiB_GBps"], two["pin"]
    ours, cudas = (sums(two, f"cpu_us_{a}", f"cpu_us_{b}") for a, b in (
        ("ta_copy_to_device", "ta_release"),
        ("cudas_part_of_copy", "cudas_part_of_release")))
    yield "copies, pins and releases", [
        check_row("H2D of 204", [
            h2d["slot"], 100 * h2d["slot"] / h2d["cudaMallocHost"],
            h2d["cudaMallocHost"]]),
        check_row("the same, not", [h2d["slot_not_pinned"]]),
        check_row("D2H of 204", [two["d2h_204MiB_loan_to_commit_GBps"]]),
        check_row("registering", [pin["of_that_register_ms"],
                                  pin["first_view_ms"]]),
        check_row("three more", [pin["prepare_3_more_slots_ms"]]),
        check_row("slot free", idle(two, free) + idle(two, free, "p99")
                  + [max(idle(two, free, "max"))]),
        check_row("caller's CPU of a view", idle(two, "cpu_us_ta_view")),
        check_row("caller's CPU of copy", ours + cudas),
        check_sentence(r"Of what is ours, (.*?) us are copy and release",
                       [a - b for a, b in zip(ours, cudas)]),
        check_sentence(r"met by 99%, which take (.*?) at worst",
                       idle(one, free, "p99") + [max(idle(one, free, "max"))])]

    yield "the photograph", [
        check_row(f"{n} |", [
            run[key] for key in ("put_ms", "h2d_gbps", "pin_ms",
                                 "slot_free_ms")])
        for n in (1, 2, 4, 8)
        for run in [record(f"broadcast-gpu-{n}-readers-2xH200.json")]]

    ways = {(way["way"], way["gpu"]): way
            for way in record("tarena-bench-2xH200.json")["ways"]
            if way["readers"] == 4}
    yield "tarena bench", [
        check_row(name, [ways[way, False]["put_ms"],
                         ways[way, False]["all_verified_ms"],
                         ways[way, True]["all_verified_ms"],
                         ways[way, True]["h2d_gbps"]])
        for name, way in (("arena", "arena"), ("a socket", "socket"))]


def main():
    done = list(tests())
    print(f"1..{len(done)}")
    for number, (name, said) in enumerate(done, 1):
        for why in filter(None, said):
            print("#", why)
        print("not ok" if any(said) else "ok", number,
              f"- the figures of {name} are those of the record")


main()
