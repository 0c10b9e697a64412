# SPDX-License-Identifier: MIT
#
# Two things at the same time; on the kernel that looks for data races, too.

RACE_TESTS := $(addprefix $(BUILD)/races/,owner_races mapping_races \
	end_races wake_races)
RACE_BARE_TESTS := $(BUILD)/races/unload_race

GUEST_TESTS += $(RACE_TESTS)
BARE_TESTS += $(RACE_BARE_TESTS)

$(RACE_TESTS) $(RACE_BARE_TESTS): $(BUILD)/races/%: tests/races/%.c \
		$(KSELFTEST)/kselftest_harness.h | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KSELFTEST_FLAGS) -o $@ $< -pthread
