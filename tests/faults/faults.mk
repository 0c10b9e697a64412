# SPDX-License-Identifier: MIT
#
# Allocations and copies that fail, one after the other; only a kernel with
# fault injection can do that.

FAULT_TESTS := $(BUILD)/faults/fail_nth
FAULT_BARE_TESTS := $(BUILD)/faults/fail_nth_load

GUEST_TESTS_debug += $(FAULT_TESTS)
GUEST_TESTS_uml += $(FAULT_TESTS)
BARE_TESTS_debug += $(FAULT_BARE_TESTS)
BARE_TESTS_uml += $(FAULT_BARE_TESTS)

$(FAULT_TESTS) $(FAULT_BARE_TESTS): $(BUILD)/faults/%: tests/faults/%.c \
		$(BUILD)/obj/tests/campaign/campaign.o | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -static -o $@ $(filter %.c %.o %.a,$^)

programs: $(FAULT_TESTS) $(FAULT_BARE_TESTS)
suite-vm-debug suite-vm-uml: $(FAULT_TESTS) $(FAULT_BARE_TESTS)
