# SPDX-License-Identifier: MIT
#
# The real module on 64-bit Arm, in an emulated machine: Debian's kernels, the
# module and all test programs in C built by a cross-compiler.  A second make
# builds the programs, by their own rules, into $(ARM64_GUEST).

ARM64_GUEST := build/arm64/guest
ARM32_CC := arm-linux-gnueabihf-gcc
# Not the scripts: their interpreters would have to be fetched, and Python's
# extension be built for them.
ARM64_GUEST_TESTS := $(filter-out tests/%,$(GUEST_TESTS))
ARM64_GUEST_FILES := $(filter $(BUILD)/tests/standin/%,$(GUEST_FILES))

#: make check-arm64-vm the module on 64-bit Arm in a virtual machine, 6.1 and 6.12
check-arm64-vm:
	@tests/check $(addprefix vm-,$(ARM64_KERNELS))

$(addprefix suite-vm-,$(ARM64_KERNELS)): suite-vm-%: \
		$(BUILD)/module-%/tensorarena.ko \
		| deps-vm+arm64+arm64-vm+unit+lib
	@packages=$$(tests/vm/fetch-arm64)/usr/lib/aarch64-linux-gnu && \
	$(MAKE) --no-print-directory BUILD=$(ARM64_GUEST) NO_DEPS=1 \
		CC=$(ARM64_CC) AR=$(ARM64_AR) \
		LDFLAGS="-L$$packages -Wl,-rpath-link,$$packages" \
		run-arm64-guest KERNEL=$*

# What is worth its time in make check: what depends on the architecture, and
# what depends on how things happen at the same time.
ARM64_CUT := $(addprefix $(ARM64_GUEST)/, \
	$(addprefix selftests/,abi compat death evict faults mapping memory pins \
		poll storm tiers) \
	$(addprefix tests/,engine-concurrency engine-threads kill-reader op-fuzz) \
	races/owner_races)

suite-arm64-vm: $(BUILD)/module-$(lastword $(ARM64_KERNELS))/tensorarena.ko \
		| deps-vm+arm64+arm64-vm+unit+lib
	@$(MAKE) --no-print-directory RESULT_PREFIX=arm64-vm \
		ARM64_GUEST_TESTS='$(ARM64_CUT)' ARM64_GUEST_FILES= \
		BARE_TESTS= suite-vm-$(lastword $(ARM64_KERNELS))

# In the second make, where BUILD is $(ARM64_GUEST).
run-arm64-guest: $(BUILD)/vm/poweroff $(ARM64_GUEST_TESTS) $(BARE_TESTS)
	@GUEST_FILES='$(ARM64_GUEST_FILES)' VM_CPUS=4 \
		tests/vm/run-tests $(KERNEL) \
		$(ARM64_GUEST_TESTS) -- $(BARE_TESTS)

# Only a 32-bit program can call as one here.
$(ARM64_GUEST)/selftests/compat: override CC := $(ARM32_CC)

.PHONY: check-arm64-vm suite-arm64-vm run-arm64-guest \
	$(addprefix suite-vm-,$(ARM64_KERNELS))
