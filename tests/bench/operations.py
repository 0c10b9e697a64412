# SPDX-License-Identifier: MIT
"""The record of the program ops: what each operation on a slot costs."""

from figures import counts_instructions, summary


class Operations:
    """Samples by number of readers and operation."""

    names = ("acquire", "publish", "borrow", "next", "release")

    def __init__(self, record):
        self.record = record
        self.engine = record["engine"]
        self.runs = {run["readers"]: run
                     for run in record["samples_ns_sorted"]}
        self.instructions = counts_instructions(record)

    @property
    def unit(self):
        return "thousand instructions" if self.instructions else "us"

    @property
    def unit_ms(self):
        return "million instructions" if self.instructions else "ms"

    @property
    def readers(self):
        return sorted(self.runs)

    def quantile(self, readers, op, at):
        """In ns."""
        samples = self.runs[readers][op]
        return samples[min(len(samples) - 1, int(len(samples) * at))]

    def first_use(self, which, what):
        """Of a slot of 200 MiB: time and CPU time of a put or view, in ms."""
        record = self.record["first_use_200_mib"]
        return [summary(record[f"{which}_{what}_{unit}"])
                for unit in ("ms", "cpu_ms")]

    def cycles(self, readers):
        """Tensors a second: acquire, publish; borrow, release by each.

        By the medians, which other users of the machine do not change.
        """
        def median(op):
            return self.quantile(readers, op, .5)

        return 1e9 / (median("acquire") + median("publish") + readers
                      * (median("borrow") + median("release")))

    def rate(self, readers):
        """Operations a second in such cycles."""
        return self.cycles(readers) * (2 + 2 * readers)

    def figures(self):
        """For the record, by name."""
        for key, value in self.record["idle_arena"].items():
            yield f"idle_arena_{key}", value
        for which in ("first", "second"):
            for what in ("put", "view"):
                time, cpu = self.first_use(which, what)
                yield f"{which}_{what}_ms", time.value
                yield f"{which}_{what}_cpu_ms", cpu.value
        for n in self.readers:
            yield f"cycles_per_s_n{n}", self.cycles(n)
            for op in self.names:
                for q in (50, 99):
                    yield f"{op}_n{n}_p{q}_ns", self.quantile(n, op, q / 100)
