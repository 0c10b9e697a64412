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

    def first_use(self, which):
        """Of a slot of 200 MiB: what put and view took, in ms."""
        record = self.record["first_use_200_mib"]
        return [summary(record[f"{which}_{what}_ms"])
                for what in ("put", "view")]

    def mean(self, readers, op):
        samples = self.runs[readers][op]
        return sum(samples) / len(samples)

    def cycles(self, readers):
        """Tensors a second: acquire, publish; borrow, release by each."""
        writer = self.mean(readers, "acquire") + self.mean(readers, "publish")
        reader = self.mean(readers, "borrow") + self.mean(readers, "release")
        return 1e9 / (writer + readers * reader)

    def rate(self, readers):
        """Operations a second in such cycles."""
        return self.cycles(readers) * (2 + 2 * readers)

    def figures(self):
        """For the record, by name."""
        for key, value in self.record["idle_arena"].items():
            yield f"idle_arena_{key}", value
        for which in ("first", "second"):
            put, view = self.first_use(which)
            yield f"{which}_put_ms", put.value
            yield f"{which}_view_ms", view.value
        for n in self.readers:
            yield f"cycles_per_s_n{n}", self.cycles(n)
            for op in self.names:
                for q in (50, 99):
                    yield f"{op}_n{n}_p{q}_ns", self.quantile(n, op, q / 100)
