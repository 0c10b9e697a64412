# SPDX-License-Identifier: MIT
#
# A suite is a program that writes TAP.  Its output goes into
# build/results/SUITE.tap, and tests/summary adds them up.
#
# The fragments tests/PART/PART.mk add to
#   HOST_TESTS		programs to run here; their environment says
#			TENSORARENA_TEST_ENGINE=embedded
#   GUEST_TESTS		programs to run in the virtual machine while the module
#			is loaded; TENSORARENA_TEST_ENGINE=device there.  Shared
#			libraries they need are taken along.
#   LONG_SUITES		groups for check-long
#   GUEST_FILES		what else they need there, HOST_PATH:GUEST_PATH
# The same program may be in both.  Programs for the virtual machine may use the
# kernel's selftest harness, in $(KSELFTEST).

RESULTS := $(BUILD)/results
HOST_TESTS :=
GUEST_TESTS :=
GUEST_FILES :=
LONG_SUITES :=
KSELFTEST := $(BUILD)/kselftest
# The harness defines functions that do not use all their parameters.
KSELFTEST_FLAGS := -isystem $(KSELFTEST) -Wno-unused-parameter -static

# The library's first: others build on what it names.
LIB_FRAGMENT := tests/lib/lib_tests.mk
include $(LIB_FRAGMENT) $(filter-out $(LIB_FRAGMENT),$(wildcard tests/*/*.mk))

#: make check        all tests: host, arm64, ABI, dkms, virtual machines with 6.1, 6.12
check:
	@tests/check lint host arm64 abi dkms $(addprefix vm-,$(HOST_KERNELS)) \
		$(addprefix memory-,$(HOST_KERNELS)) arm64-vm

#: make check-unit   the tests that need no kernel module
check-unit:
	@tests/check host

# All that is compiled for user space.
programs: $(ALL) $(HOST_TESTS) $(GUEST_TESTS) $(BARE_TESTS)

.PHONY: check check-unit programs

#: make check-long   what takes too long for make check: an hour and more
check-long:
	@tests/check $(LONG_SUITES)

.PHONY: check-long

# Each of these leaves its results behind and fails only when it cannot run.
suite-host: $(HOST_TESTS)
	$(foreach t,$(HOST_TESTS),@tests/run-tap host-$(basename $(notdir $(t))) \
		env TENSORARENA_TEST_ENGINE=embedded $(t)$(newline))

.PHONY: suite-host

define newline


endef
