# SPDX-License-Identifier: MIT
"""Figures from the records of a benchmark run: medians, ratios, slopes, targets.

A ratio is that of the medians of two series measured in the same rounds; its
spread is that of the rounds' own ratios.
"""

from dataclasses import dataclass
from statistics import median
from typing import Optional

MIB = 1 << 20
#: The size that the targets are about.
TARGET_BYTES = 200 * MIB
MODES = ("pointer", "read", "gpu")


@dataclass(frozen=True)
class Value:
    """A figure with its spread."""

    value: float
    min: float
    max: float

    def as_json(self):
        return {"value": self.value, "min": self.min, "max": self.max}


def summary(samples):
    """The median of samples, with the smallest and the largest."""
    return Value(median(samples), min(samples), max(samples))


def ratio(over, under):
    """How many times one column is the other, round by round and in all."""
    rounds = [a / b for a, b in zip(over, under)]
    return Value(median(over) / median(under), min(rounds), max(rounds))


def line(points):
    """Intercept and slope of the least squares line through (x, y) points."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    under = sum((x - mean_x) ** 2 for x, _ in points)
    slope = over / under
    return mean_y - slope * mean_x, slope


def counts_instructions(record):
    """Whether the clock ticked once an instruction; see bench_vm.mk."""
    return record.get("clock") == "instructions"


class Broadcast:
    """The series of one run of the broadcast benchmark."""

    def __init__(self, record):
        self.record = record
        self.contenders = {c["name"]: c for c in record["contenders"]}
        self.series = {
            (s["contender"], s["readers"], s["bytes"], s["mode"]): s
            for s in record["series"]}

    @property
    def unit(self):
        """A million ticks of the clock that the series are measured by."""
        return "million instructions" if counts_instructions(self.record) \
            else "ms"

    def values(self, place):
        """The different contenders, readers, sizes or modes there are."""
        return list(dict.fromkeys(key[place] for key in self.series))

    @property
    def names(self):
        return self.values(0)

    @property
    def readers(self):
        return sorted(n for n in self.values(1) if n)

    @property
    def sizes(self):
        return sorted(self.values(2))

    @property
    def modes(self):
        return [m for m in MODES if m in self.values(3)]

    @property
    def target_bytes(self):
        """What the ratios are stated for."""
        sizes = self.sizes
        return TARGET_BYTES if TARGET_BYTES in sizes else sizes[-1]

    def column(self, column, name, readers, nbytes, mode):
        series = self.series.get((name, readers, nbytes, mode))
        return series.get(column) if series else None

    def value(self, column, *key) -> Optional[Value]:
        samples = self.column(column, *key)
        return summary(samples) if samples else None

    def slope_readers(self, column, name, nbytes, mode):
        """Milliseconds for each further reader, and for none."""
        points = [(n, median(samples)) for n in self.readers
                  if (samples := self.column(column, name, n, nbytes, mode))]
        return line(points) if len(points) > 2 else None

    def slope_bytes(self, column, name, readers, mode):
        """Milliseconds for each further byte, and for none."""
        points = [(b, median(samples)) for b in self.sizes
                  if (samples := self.column(column, name, readers, b, mode))]
        return line(points) if len(points) > 2 else None

    def copies(self, name, readers, mode):
        """Times that the processor copies each byte delivered."""
        contender = self.contenders[name]
        take = contender["copies_take"]
        if mode == "gpu":
            take += contender["copies_gpu"]
        return (contender["copies_put"] + readers * take) / readers


def put_ratios(run, nbytes):
    """The writer's time in put, against the floors and against itself."""
    mode = run.modes[0]
    for name, column, over, under in (
            ("put_over_memcpy", "put_ms", ("arena", 1), ("memcpy", 0)),
            ("put_over_best_copy", "put_ms", ("arena", 1), ("best copy", 0)),
            ("writer_n8_over_n1", "put_ms", ("arena", 8), ("arena", 1)),
            # On a machine that others use as well, time is theirs, too.
            ("writer_cpu_over_memcpy", "writer_cpu_ms",
             ("arena", 1), ("memcpy", 0)),
            ("writer_cpu_n8_over_n1", "writer_cpu_ms",
             ("arena", 8), ("arena", 1))):
        above = run.column(column, *over, nbytes, mode)
        below = run.column(column, *under, nbytes, mode)
        if above and below:
            yield name, ratio(above, below)


def peer_ratios(run, nbytes):
    """How many times longer than tensorarena each peer takes."""
    for name in run.names:
        if name == "arena" or run.contenders[name]["floor"]:
            continue
        for mode in run.modes:
            for readers in run.readers:
                over = run.column("end_ms", name, readers, nbytes, mode)
                under = run.column("end_ms", "arena", readers, nbytes, mode)
                if over and under:
                    key = f"{name}_over_arena_n{readers}"
                    yield key if mode == "pointer" else f"{key}_{mode}", \
                        ratio(over, under)


def gpu_ratios(run, nbytes):
    """Against the floors of copy and DMA."""
    for readers in run.readers:
        dma = run.column("use_ms", "pinned", readers, nbytes, "gpu")
        own = run.column("use_ms", "arena", readers, nbytes, "gpu")
        end = run.column("end_ms", "arena", readers, nbytes, "gpu")
        copy = run.column("put_ms", "best copy", 0, nbytes, "gpu")
        if dma and own:
            yield f"h2d_rate_over_pinned_n{readers}", ratio(dma, own)
        if dma and copy and end:
            floor = [a + b for a, b in zip(copy, dma)]
            yield f"end_over_copy_and_dma_n{readers}", ratio(end, floor)


def message_ratios(run):
    """What an idle arena adds to a message."""
    for readers in run.readers:
        for key in run.series:
            if key[0] != "message" or key[1] != readers:
                continue
            over = run.column("have_ms", "message beside arena", *key[1:])
            under = run.column("have_ms", *key)
            if not over:
                continue
            yield f"message_beside_arena_n{readers}", Value(
                median(over) / median(under), median(over), median(under))


def all_ratios(runs):
    """Every ratio that the runs allow, by name; of two runs, the first's."""
    ratios = {}
    for run in runs:
        found = []
        if "arena" in run.names:
            nbytes = run.target_bytes
            found += put_ratios(run, nbytes)
            found += peer_ratios(run, nbytes)
            found += gpu_ratios(run, nbytes)
        found += message_ratios(run)
        for name, value in found:
            ratios.setdefault(name, value)
    return ratios


@dataclass(frozen=True)
class Target:
    """A figure that is to be at least or at most so much."""

    key: str
    text: str
    least: Optional[float] = None
    most: Optional[float] = None
    gpu: Optional[bool] = None

    def verdict(self, figures):
        value = figures.get(self.key)
        if value is None:
            return "not measured"
        if self.least is not None:
            return "met" if value >= self.least else "missed"
        return "met" if value <= self.most else "missed"

    @property
    def limit(self):
        return f">= {self.least}" if self.least is not None \
            else f"<= {self.most}"


TARGETS = (
    Target("socket_over_arena_n4_gpu", "to the GPUs, N=4: times the "
           "out-of-band socket's time", least=15, gpu=True),
    Target("socket_over_arena_n1_gpu", "the same, N=1", least=10, gpu=True),
    Target("put_over_best_copy", "the writer's put, in best copies the "
           "machine can make", most=1.15),
    Target("h2d_rate_over_pinned_n1", "copy to the GPU, in rates from "
           "cudaMallocHost memory", least=0.95, gpu=True),
    Target("end_over_copy_and_dma_n4", "end to end, N=4, in best copy and "
           "DMA floors", most=1.15, gpu=True),
    Target("end_over_copy_and_dma_n1", "the same, N=1", most=1.15, gpu=True),
    Target("socket_over_arena_n4", "no GPU, N=4: times the out-of-band "
           "socket's time", least=4, gpu=False),
    Target("writer_n8_over_n1", "the writer's put for 8 readers, in puts "
           "for one", most=1.05),
    Target("message_beside_arena_n1", "a message without a tensor beside an "
           "idle arena, in such without one", most=1.05),
    Target("idle_arena_writer_kib", "an idle arena's memory in the writer, "
           "KiB", most=100),
    Target("idle_arena_writer_threads", "an idle arena's threads in the "
           "writer", most=0),
)


def judge(figures, gpu):
    """The targets that concern this machine, each with its verdict."""
    return [{"key": t.key, "what": t.text, "limit": t.limit,
             "value": figures.get(t.key), "verdict": t.verdict(figures)}
            for t in TARGETS if t.gpu is None or t.gpu == gpu]
