# SPDX-License-Identifier: MIT
#
# Figures for people, not tests: they assert nothing.

EMBEDDED_OPS := $(BUILD)/bench/embedded_ops

$(EMBEDDED_OPS): $(BUILD)/obj/tests/bench/embedded_ops.o $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS)

$(BUILD)/obj/tests/bench/embedded_ops.o: tests/bench/embedded_ops.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

#: make bench-embedded  what operations of the embedded engine cost
bench-embedded: $(EMBEDDED_OPS)
	$(EMBEDDED_OPS)

.PHONY: bench-embedded
