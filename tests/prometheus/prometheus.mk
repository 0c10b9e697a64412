# SPDX-License-Identifier: MIT
#
# Not part of `make check`, for it fetches a large package.

#: make check-prometheus a real Prometheus scrapes tarena metrics
check-prometheus:
	@tests/check prometheus

suite-prometheus: $(BUILD)/tarena $(BUILD)/tests/busy_arena | deps-unit
	@tests/run-tap prometheus-scrape tests/prometheus/run

.PHONY: check-prometheus suite-prometheus
