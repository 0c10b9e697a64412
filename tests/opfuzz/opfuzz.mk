# SPDX-License-Identifier: MIT
#
# Random operations against the model of the slot state machine, on either
# engine.

OPFUZZ := $(BUILD)/tests/op-fuzz
OPFUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o, \
	$(wildcard tests/opfuzz/*.c) tests/campaign/campaign.c \
	tests/unit/slots_model.c tests/unit/slots_ops.c)

HOST_TESTS += $(OPFUZZ)
GUEST_TESTS += $(OPFUZZ)

$(BUILD)/obj/tests/opfuzz/%.o: tests/opfuzz/%.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(OPFUZZ): $(OPFUZZ_OBJECTS) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS)
