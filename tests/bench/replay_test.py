#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""The replay, on few and small images: that every image arrives both ways and
that what is said of them is right.  No figure is judged."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "python"), HERE]

from harness import HANG_S, Case, main  # noqa: E402
import replay  # noqa: E402


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, "replay.py"), "--cpu",
         *arguments], stdout=subprocess.PIPE, timeout=5 * HANG_S, check=True)
    return json.loads(done.stdout)


class Replay(Case):
    def test_images_arrive_both_ways_at_all_readers(self):
        record = run("--readers", "1,3", "--images", "5", "--rate", "50",
                     "--sizes", "1.1,2", "--encoder-ms", "3", "--seed", "7")
        self.assertEqual(sorted(record["readers"]), ["1", "3"])
        self.assertEqual((record["gpus"], record["options"]["seed"]), ([], 7))
        for ways in record["readers"].values():
            for way in replay.WAYS:
                ttft = ways[way]["ttft_ms"]
                self.assertGreaterEqual(ttft["p50"], 3)
                self.assertLessEqual(ttft["p50"], ttft["p90"])
                self.assertLessEqual(ttft["p99"], ttft["max"])
                self.assertEqual(ways[way]["declined"], 0)


class Summary(Case):
    # Two readers; a second image that arrives before the first is done.
    STEPS = [(10.0, 0.001, [(10.2, 10.3), (10.1, 10.2)]),
             (10.25, 0.003, [(11.0, 11.1), (10.7, 11.5)])]

    def test_a_gap_begins_when_the_image_is_there_and_the_encoder_free(self):
        first, second = (list(replay.gaps(self.STEPS, r)) for r in range(2))
        self.assertEqual([round(g, 6) for g in first], [0.2, 0.7])
        self.assertEqual([round(g, 6) for g in second], [0.1, 0.45])

    def test_the_last_reader_counts_for_ttft(self):
        summed = replay.summary(self.STEPS, 0)
        self.assertEqual(summed["ttft_ms"],
                         {"p50": 1250, "p90": 1250, "p99": 1250, "max": 1250})
        self.assertEqual(summed["over_1s"], 1)
        self.assertEqual(summed["idle_gap_ms"]["mean"], 362.5)

    def test_quantiles_are_of_what_was_measured(self):
        seen = replay.quantiles([n / 1000 for n in range(100)])
        self.assertEqual(seen, {"p50": 50, "p90": 90, "p99": 99, "max": 99})


if __name__ == "__main__":
    main()
