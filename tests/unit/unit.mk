# SPDX-License-Identifier: MIT
#
# The slot state machine, in user space, and the layout of the uAPI.

UNIT_TESTS := $(patsubst %,$(BUILD)/unit/%, \
	slots_reader slots_seats slots_walk slots_writer)
HOST_TESTS += $(UNIT_TESTS) tests/unit/uapi-layout

UNIT_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/slots_*.c))

$(UNIT_OBJECTS): $(BUILD)/obj/%.o: %.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/unit/slots_walk: $(BUILD)/obj/tests/unit/slots_model.o \
	$(BUILD)/obj/tests/unit/slots_ops.o

$(UNIT_TESTS): $(BUILD)/unit/%: $(BUILD)/obj/tests/unit/%.o \
		$(BUILD)/obj/module/slots.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka

tests/unit/uapi-layout: | deps-unit

#: make unit         the state machine's unit tests
unit: $(UNIT_TESTS)

.PHONY: unit
