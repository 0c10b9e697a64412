# SPDX-License-Identifier: MIT
#
# Suites write TAP into build/results/NAME.tap; tests/summary adds them up.
