# SPDX-License-Identifier: MIT
#
# Programs that load and remove the module themselves, in the virtual machine.

BARE_TESTS := $(BUILD)/module-tests/load_unload

$(BARE_TESTS): $(BUILD)/module-tests/%: tests/module/%.c tests/module/memory.c \
		$(KSELFTEST)/kselftest_harness.h | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KSELFTEST_FLAGS) -o $@ \
		$(filter %.c,$^)
