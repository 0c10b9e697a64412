# SPDX-License-Identifier: MIT
"""What arenas tell of themselves, as a dict and to Prometheus.

The names are in the style of vLLM's: tensorarena:slots, tensorarena:
declined_total and so on.  Durations are in seconds there.

    metrics.snapshot(writer)["declines"]
    metrics.register(writer, labels={"engine": "0"})

With prometheus_client in multi-process mode register with a registry that is
served by the process itself.
"""

from __future__ import annotations

import weakref

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    End = _core.Writer | _core.Reader
    Samples = Iterable[tuple[tuple[str, ...], float]]

# Name, kind, help and where it is in stats() of a writer.
_WRITER = (
    ("allocated_bytes", "gauge", "Memory the slots hold.",
     ("allocated_bytes",)),
    ("puts", "counter", "Tensors published.", ("puts",)),
    ("put_bytes", "counter", "Bytes published.", ("put_bytes",)),
    ("aborted", "counter", "Slots taken and given back unpublished.",
     ("aborted",)),
    ("released", "counter", "Releases by readers.", ("released",)),
    ("retracted", "counter",
     "Readers that publications were taken back from, unseen.",
     ("retracted",)),
    ("readers_attached", "counter", "Readers that ever attached.",
     ("attached",)),
    ("readers_evicted", "counter", "Readers thrown out.", ("evicted",)),
    ("readers_reclaimed", "counter", "Readers that died in their seats.",
     ("reclaimed_dead_readers",)),
)
# The same of a reader.
_READER = (
    ("views", "gauge", "Publications held.", ("views",)),
    ("releases_queued", "gauge", "Releases about to happen.", ("queued",)),
    ("releases_waiting", "gauge", "Releases that wait for CUDA streams.",
     ("cuda", "pending")),
    ("releases_deferred", "counter", "Releases that had to wait.",
     ("cuda", "deferred")),
    ("pinned_bytes", "gauge", "Memory registered with CUDA.",
     ("cuda", "pinned_bytes")),
    ("pinned_slots", "gauge", "Slots registered with CUDA.",
     ("cuda", "pinned_slots")),
    ("pins", "counter", "Registrations ever made.", ("cuda", "pins")),
    ("pin_failures", "counter", "Slots that could not be registered.",
     ("cuda", "pin_failures")),
    ("cuda_errors", "counter", "CUDA calls that failed.",
     ("cuda", "errors")),
)
_HOLDER = ("reader", "seat", "pid")


def snapshot(end: End) -> dict[str, Any]:
    """What a Writer or Reader tells, as a dict.

    All of its stats(), and of a writer
        "busy_slots": slots that are not free
        "holder": the reader with the oldest publication that has not been
            released, as a dict of "reader", "seat", "pid", "pending" and
            "oldest_ns"; None when nothing is pending.  A reader of 0 is a seat
            that nobody has claimed
        "pin_ns": time spent on registering memory with CUDA; of a reader, too
    """
    stats = end.stats()
    stats["pin_ns"] = stats["cuda"]["pin_ns"]
    if isinstance(end, _core.Writer):
        stats["busy_slots"] = stats["slots"] - stats["free"]
        holders = [row for row in stats["readers"] if row["pending"]]
        stats["holder"] = max(holders, key=lambda row: int(row["oldest_ns"]),
                              default=None)
    return stats


def register(end: End, registry: Any = None,
             labels: dict[str, str] | None = None) -> Collector | None:
    """Has prometheus_client report a Writer or Reader for as long as it lives.

    registry: prometheus_client.REGISTRY by default
    labels: a dict, for all of its metrics

    Returns the collector, or None where prometheus_client is not installed.
    """
    try:
        import prometheus_client
    except ImportError:
        return None
    if registry is None:
        registry = prometheus_client.REGISTRY
    collector = Collector(end, labels)
    registry.register(collector)
    weakref.finalize(end, _unregister, registry, collector)
    return collector


def _unregister(registry: Any, collector: Collector) -> None:
    try:
        registry.unregister(collector)
    except KeyError:
        # The user has.
        pass


class Collector:
    """Metrics of one Writer or Reader, for a prometheus_client registry."""

    def __init__(self, end: End,
                 labels: dict[str, str] | None = None) -> None:
        self._end = weakref.ref(end)
        self._labels = dict(labels or {})

    def describe(self) -> list[Any]:
        """Nothing: several arenas report under the same names."""
        return []

    def collect(self) -> Iterator[Any]:
        """What the registry calls."""
        end = self._end()
        if end is None or end.closed:
            return
        try:
            stats = snapshot(end)
        except _core.Error:
            # Closed or thrown out meanwhile.
            return
        if isinstance(end, _core.Writer):
            yield from self._of_writer(stats)
        else:
            yield from self._of_reader(stats)

    def _of_writer(self, stats: dict[str, Any]) -> Iterator[Any]:
        yield self._family(
            "slots", "gauge", "Slots by state.", ("state",),
            [((state,), stats[state])
             for state in ("free", "writing", "published")])
        yield self._family(
            "declined", "counter", "Tensors that were declined, by reason.",
            ("reason",),
            [((reason,), n) for reason, n in stats["declines"].items()])
        rows = [(tuple(str(row[label]) for label in _HOLDER), row)
                for row in stats["readers"]]
        yield self._family(
            "oldest_publication_seconds", "gauge",
            "Age of the oldest publication a reader has not released.",
            _HOLDER, [(who, row["oldest_ns"] / 1e9) for who, row in rows])
        yield self._family(
            "pending_slots", "gauge", "Slots a reader has not released.",
            _HOLDER, [(who, row["pending"]) for who, row in rows])
        yield from self._plain(_WRITER, stats)
        yield from self._pin_time("writer", stats)

    def _of_reader(self, stats: dict[str, Any]) -> Iterator[Any]:
        yield from self._plain(_READER, stats)
        yield from self._pin_time("reader", stats)

    def _pin_time(self, end: str, stats: dict[str, Any]) -> Iterator[Any]:
        yield self._family(
            "pin_seconds", "counter",
            "Time spent on registering slots with CUDA.", ("end",),
            [((end,), stats["pin_ns"] / 1e9)])

    def _plain(self, table: Iterable[tuple[str, str, str, tuple[str, ...]]],
               stats: dict[str, Any]) -> Iterator[Any]:
        for name, kind, text, path in table:
            value: Any = stats
            for key in path:
                value = value[key]
            yield self._family(name, kind, text, (), [((), value)])

    def _family(self, name: str, kind: str, text: str,
                labels: tuple[str, ...], samples: Samples) -> Any:
        from prometheus_client import core

        family = (core.CounterMetricFamily if kind == "counter"
                  else core.GaugeMetricFamily)
        common = tuple(self._labels)
        metric = family("tensorarena:" + name, text, labels=common + labels)
        for values, value in samples:
            metric.add_metric(tuple(self._labels.values()) + values, value)
        return metric
