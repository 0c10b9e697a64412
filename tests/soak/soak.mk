# SPDX-License-Identifier: MIT
#
# Hundreds of thousands of tensors, and whether anything grows.

SOAK := $(BUILD)/tests/soak

HOST_TESTS += $(SOAK)
GUEST_TESTS += $(SOAK)

$(BUILD)/obj/tests/soak/%.o: tests/soak/%.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(SOAK): $(BUILD)/obj/tests/soak/soak.o $(BUILD)/obj/tests/campaign/campaign.o \
		$(BUILD)/obj/tests/lib/pattern.o $(BUILD)/libtensorarena.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,-rpath,'$$ORIGIN/..' -o $@ $^
