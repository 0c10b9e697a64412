# SPDX-License-Identifier: MIT
#
# Slot memory on a machine made for it (see run-machine), and the table of what
# each kernel made of it.

MEMORY_TESTS := $(addprefix $(BUILD)/memory/,numa fragmentation long_pins \
	pressure)
MEMORY_BARE_TESTS := $(BUILD)/memory/outlive

$(MEMORY_TESTS) $(MEMORY_BARE_TESTS): $(BUILD)/memory/%: tests/memory/%.c \
		$(KSELFTEST)/kselftest_harness.h | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KSELFTEST_FLAGS) -o $@ $<

programs: $(MEMORY_TESTS) $(MEMORY_BARE_TESTS)

#: make check-memory tests of slot memory on two NUMA nodes, fragmented, pinned
check-memory:
	@tests/check memory-$(KERNEL)

suite-memory-%: $(BUILD)/module-%/tensorarena.ko \
		$(BUILD)/pinmod-%/tensorarena_pin.ko $(BUILD)/vm/poweroff \
		$(MEMORY_TESTS) $(MEMORY_BARE_TESTS) | deps-vm
	@tests/memory/run-machine $* $(MEMORY_TESTS) -- $(MEMORY_BARE_TESTS)

#: make check-matrix check-vm and check-memory on every kernel, docs/kernels.md
check-matrix:
	@tests/check $(foreach k,$(KERNELS),vm-$k memory-$k)
	@tests/memory/kernels-table docs/kernels.md

.PHONY: check-memory check-matrix
