# SPDX-License-Identifier: MIT
#
# Kernels that look for mistakes, and everything run on them: `debug' for
# memory, locks, leaks and injected faults, `kcsan' for data races, `uml' for what
# `debug' looks for in many more operations.

#: make debug-kernel builds the debug kernels (an hour, kept in the cache)
debug-kernel:
	@for name in $(DEBUG_KERNELS); do \
		tests/debug/build-kernel $$name || exit; \
	done

#: make check-debug  every test and campaign of the module on the debug kernels
check-debug:
	@tests/check $(addprefix vm-,$(DEBUG_KERNELS))

# An emulated processor that checks every access is slow.
VM_SETTINGS_debug := VM_MEMORY=3G VM_LIMIT=10800 TEST_LIMIT=1800
VM_SETTINGS_kcsan := VM_CPUS=4 VM_LIMIT=10800 TEST_LIMIT=1800

# By its name the last to be run.
BARE_TESTS_debug := tests/debug/unreferenced_objects
BARE_TESTS_uml := $(BARE_TESTS_debug)

.PHONY: debug-kernel check-debug
