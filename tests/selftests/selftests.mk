# SPDX-License-Identifier: MIT
#
# Programs against the module's uAPI, each on the harness of the kernel's own
# selftests, whose headers come out of Debian's linux-source package.  Static,
# so that the machine they run in needs nothing of the host's.

SELFTESTS := $(patsubst tests/selftests/%.c,$(BUILD)/selftests/%, \
	$(wildcard tests/selftests/*.c))
GUEST_TESTS += $(SELFTESTS)

# The harness ends a test after 30 seconds, which on an emulated processor that
# checks every access is no sign of anything.
$(KSELFTEST)/kselftest_harness.h: tests/vm/fetch-source \
		tests/selftests/selftests.mk
	@mkdir -p $(@D)
	dir=$$(tests/vm/fetch-source) && \
		cp $$dir/tools/testing/selftests/kselftest*.h $(@D)
	sed -i 's/\(TEST_TIMEOUT_DEFAULT\) 30$$/\1 600/' $@
	grep -q 'TEST_TIMEOUT_DEFAULT 600$$' $@

$(BUILD)/selftests/%: tests/selftests/%.c $(KSELFTEST)/kselftest_harness.h \
		| deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KSELFTEST_FLAGS) -o $@ $< \
		-pthread

#: make selftests    the programs that run in the virtual machine
selftests: $(SELFTESTS)

.PHONY: selftests
