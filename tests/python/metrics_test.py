#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Metrics, as a dict and as prometheus_client gives them out."""

import gc
import os
import subprocess
import sys

import harness
from harness import Case, arena, main, pair
import tensorarena
from tensorarena import metrics

import prometheus_client


def scraped(registry):
    text = prometheus_client.generate_latest(registry).decode()
    return dict(line.rsplit(" ", 1) for line in text.splitlines()
                if not line.startswith("#"))


class Metrics(Case):
    def test_a_snapshot_tells_who_holds_what(self):
        writer = arena(slots=3, seats=2)
        reader = tensorarena.Reader(writer.handle)
        self.assertIsNone(metrics.snapshot(writer)["holder"])
        first = reader.view(writer.put(b"x"))
        writer.put(b"y")
        writer.put(bytes(1 << 30))
        seen = metrics.snapshot(writer)
        self.assertEqual((seen["slots"], seen["busy_slots"]), (3, 2))
        self.assertEqual(seen["declines"], {"oversize": 1})
        # Nobody has claimed the other seat, and so nobody has looked.
        self.assertEqual(seen["holder"]["pending"], 2)
        self.assertGreater(seen["holder"]["oldest_ns"], 0)
        writer.close_seat(1)
        holder = metrics.snapshot(writer)["holder"]
        self.assertEqual((holder["reader"], holder["pid"]),
                         (reader.id, os.getpid()))
        self.assertEqual(seen["pin_ns"], 0)
        seen = metrics.snapshot(reader)
        self.assertEqual((seen["views"], seen["pin_ns"]), (1, 0))
        del first

    def test_prometheus_gets_every_figure(self):
        registry = prometheus_client.CollectorRegistry()
        writer, reader = pair(slots=3)
        for end in (writer, reader):
            self.assertTrue(metrics.register(end, registry, {"engine": "0"}))
        held = reader.view(writer.put(bytes(1000)))
        writer.put(bytes(1 << 30))
        writer.decline("small")
        seen = scraped(registry)
        engine = '{engine="0"}'
        for name, value in (
                ('slots{engine="0",state="free"}', 2),
                ('slots{engine="0",state="published"}', 1),
                ('declined_total{engine="0",reason="oversize"}', 1),
                ('declined_total{engine="0",reason="small"}', 1),
                ("puts_total" + engine, 1),
                ("put_bytes_total" + engine, 1000),
                ("views" + engine, 1),
                ("pinned_bytes" + engine, 0),
                ('pin_seconds_total{end="reader",engine="0"}', 0)):
            self.assertEqual(float(seen["tensorarena:" + name]), value, name)
        age, = (float(value) for name, value in seen.items()
                if name.startswith("tensorarena:oldest_publication_seconds"))
        self.assertTrue(0 < age < harness.HANG_S)
        del held

    def test_ends_that_are_closed_or_gone_report_nothing(self):
        registry = prometheus_client.CollectorRegistry()
        writer, reader = pair()
        metrics.register(writer, registry)
        metrics.register(reader, registry)
        self.assertTrue(scraped(registry))
        writer.close()
        reader.close()
        self.assertEqual(scraped(registry), {})
        del writer, reader
        gc.collect()
        self.assertEqual(list(registry.collect()), [])
        self.assertEqual(registry._collector_to_names, {})

    def test_a_collector_may_be_taken_off_by_hand(self):
        registry = prometheus_client.CollectorRegistry()
        writer = arena()
        registry.unregister(metrics.register(writer, registry))
        del writer

    def test_without_prometheus_client_there_is_still_the_dict(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]);"
                "sys.modules['prometheus_client'] = None;"
                "import tensorarena; from tensorarena import metrics;"
                "w = tensorarena.Writer(1, 1, engine=sys.argv[2]);"
                "assert metrics.register(w) is None;"
                "assert metrics.snapshot(w)['busy_slots'] == 0")
        subprocess.run([sys.executable, "-c", code, harness.PACKAGE,
                        harness.ENGINE], check=True)


if __name__ == "__main__":
    main()
