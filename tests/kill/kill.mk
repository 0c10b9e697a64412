# SPDX-License-Identifier: MIT
#
# The kill matrix: victims killed at every step, on either engine.  One program
# under two names, which say who is the victim.

KILL_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/kill/*.c)) \
	$(BUILD)/obj/tests/campaign/campaign.o $(BUILD)/obj/tests/lib/pattern.o \
	$(BUILD)/obj/lib/handle.o
KILL_TESTS := $(BUILD)/tests/kill-reader $(BUILD)/tests/kill-writer

HOST_TESTS += $(KILL_TESTS)
GUEST_TESTS += $(KILL_TESTS)

$(BUILD)/obj/tests/kill/%.o $(BUILD)/obj/tests/campaign/%.o: | deps-unit

$(BUILD)/obj/tests/kill/%.o: tests/kill/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(BUILD)/obj/tests/campaign/%.o: tests/campaign/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(KILL_TESTS): $(KILL_OBJECTS) $(BUILD)/libtensorarena.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,-rpath,'$$ORIGIN/..' -o $@ $^

ROUNDS ?= 300
SEED ?= 1

#: make check-kill   kills readers, then writers, ROUNDS=300 of each, SEED=1
check-kill: $(KILL_TESTS)
	@tests/kill/slice $(ROUNDS) $(SEED) $(KILL_TESTS)

.PHONY: check-kill
