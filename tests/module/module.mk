# SPDX-License-Identifier: MIT
#
# How the module is made for a kernel, and programs that load and remove it
# themselves, in the virtual machine.

HOST_TESTS += tests/module/features_test.sh
BARE_TESTS := $(BUILD)/module-tests/load_unload

$(BARE_TESTS): $(BUILD)/module-tests/%: tests/module/%.c tests/module/memory.c \
		$(KSELFTEST)/kselftest_harness.h | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KSELFTEST_FLAGS) -o $@ \
		$(filter %.c,$^)
