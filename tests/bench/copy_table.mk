# SPDX-License-Identifier: MIT
#
# The measurements behind the table in lib/copy_plan.c.  The program is linked
# statically, so that it can be taken to other machines as it is.

COPY_TABLE := $(BUILD)/bench/copy_table
COPY_TABLE_OBJECTS := $(patsubst %,$(BUILD)/obj/tests/bench/%.o, \
	copy_table copy_report)

$(COPY_TABLE): $(COPY_TABLE_OBJECTS) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -static -pthread -o $@ $^

$(COPY_TABLE_OBJECTS): $(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

#: make bench-copy   GB/s of the copy by size, threads and kernel; COPY_ARGS
bench-copy: $(COPY_TABLE)
	$(COPY_TABLE) --json $(BUILD)/bench/copy_table.json $(COPY_ARGS)

.PHONY: bench-copy
