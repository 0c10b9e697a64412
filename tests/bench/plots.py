# SPDX-License-Identifier: MIT
"""The figures as pictures, by gnuplot."""

import os
import shutil
import subprocess
from statistics import median

from figures import MIB
from tables import WHAT, size

HEAD = """set terminal svg size 800,500 background '#ffffff' font 'sans,13'
set output '{output}'
set title '{title}'
set xlabel '{xlabel}'
set ylabel '{ylabel}'
set key outside right
set grid
set logscale xy
set xtics ({xtics})
"""


def quote(text):
    return text.replace("'", "''")


class Plots:
    """Draws into a directory, if gnuplot is there."""

    def __init__(self, directory):
        self.directory = directory
        self.gnuplot = shutil.which("gnuplot")
        self.drawn = []
        os.makedirs(directory, exist_ok=True)

    def draw(self, name, title, xlabel, ylabel, curves, floor=None):
        """Curves: name to a list of (x, median, min, max)."""
        curves = {k: v for k, v in curves.items() if len(v) > 1}
        if not curves or not self.gnuplot:
            return
        output = os.path.join(self.directory, f"{name}.svg")
        ticks = sorted({x for points in curves.values() for x, *_ in points})
        script = [HEAD.format(
            output=output, title=quote(title), xlabel=xlabel, ylabel=ylabel,
            xtics=", ".join(f"'{x:g}' {x}" for x in ticks))]
        parts = []
        for i, (curve, points) in enumerate(curves.items()):
            script.append(f"$d{i} << END")
            script += [" ".join(map(str, point)) for point in points]
            script.append("END")
            parts.append(f"$d{i} using 1:2:3:4 with yerrorlines lw 2 "
                         f"pt 7 ps 0.5 title '{quote(curve)}'")
        if floor:
            parts.append(f"{floor} with lines dt 2 lc 'black' title 'floor'")
        script.append("plot " + ", \\\n".join(parts))
        subprocess.run([self.gnuplot], input="\n".join(script), text=True,
                       check=True)
        self.drawn.append(output)

    def broadcast(self, run, mode):
        nbytes, most = run.target_bytes, run.readers[-1]
        names = [n for n in run.names if not run.contenders[n]["floor"]]

        def point(column, x, *key):
            value = run.value(column, *key)
            return [(x, value.value, value.min, value.max)] if value else []

        def by_readers(column):
            return {name: sum((point(column, n, name, n, nbytes, mode)
                               for n in run.readers), []) for name in names}

        self.draw(f"readers-{mode}", f"{size(nbytes)}: until {WHAT[mode]}",
                  "readers", run.unit, by_readers("end_ms"),
                  self.floor(run, nbytes, mode))
        self.draw(f"put-{mode}", f"{size(nbytes)}: the writer's time in put",
                  "readers", run.unit, by_readers("put_ms"),
                  self.floor(run, nbytes, mode))
        self.draw(f"cpu-{mode}", f"{size(nbytes)}: CPU time of all readers",
                  "readers", run.unit, by_readers("readers_cpu_ms"))
        for readers in {min(4, most), most}:
            self.draw(
                f"sizes-n{readers}-{mode}",
                f"{readers} readers: until {WHAT[mode]}", "MiB", run.unit,
                {name: sum((point("end_ms", b / MIB, name, readers, b, mode)
                            for b in run.sizes), []) for name in names})

    @staticmethod
    def floor(run, nbytes, mode):
        samples = run.column("put_ms", "best copy", 0, nbytes, mode)
        return median(samples) if samples and mode != "gpu" else None

    def operations(self, ops):
        self.draw(
            f"operations-{ops.engine}",
            f"Operations of the {ops.engine} engine, median and 99%",
            "readers", ops.unit,
            {op: [(n, ops.quantile(n, op, .5) / 1000,
                   ops.quantile(n, op, .5) / 1000,
                   ops.quantile(n, op, .99) / 1000) for n in ops.readers]
             for op in ops.names})
