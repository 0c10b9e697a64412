# SPDX-License-Identifier: MIT
#
# Programs against the module's uAPI, each on the harness of the kernel's own
# selftests, whose headers come out of Debian's linux-source package.  Static,
# so that the machine they run in needs nothing of the host's.

SELFTESTS := $(patsubst tests/selftests/%.c,$(BUILD)/selftests/%, \
	$(wildcard tests/selftests/*.c))
GUEST_TESTS += $(SELFTESTS)

$(KSELFTEST)/kselftest_harness.h: tests/vm/fetch-source
	@mkdir -p $(@D)
	dir=$$(tests/vm/fetch-source) && \
		cp $$dir/tools/testing/selftests/kselftest*.h $(@D)

$(BUILD)/selftests/%: tests/selftests/%.c $(KSELFTEST)/kselftest_harness.h \
		| deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KSELFTEST_FLAGS) -o $@ $< \
		-pthread

#: make selftests    the programs that run in the virtual machine
selftests: $(SELFTESTS)

.PHONY: selftests
