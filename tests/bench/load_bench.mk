# SPDX-License-Identifier: MIT
#
# Loading files, side by side with fio and read(): figures for people.  The file
# is made in build/, which should be on the disk that is of interest, or at
# LOAD_FILE.

LOAD_BENCH := $(BUILD)/bench/load_bench
LOAD_BENCH_OBJECTS := $(patsubst %,$(BUILD)/obj/tests/bench/load_%.o, \
	bench fio report sandbox ways)
LOAD_FILE ?= $(BUILD)/bench/load.bytes
LOAD_MIB ?= 1024
LOAD_ROUNDS ?= 9
programs: $(LOAD_BENCH)

$(LOAD_BENCH): $(LOAD_BENCH_OBJECTS) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS) -ljansson

$(LOAD_BENCH_OBJECTS): $(BUILD)/obj/%.o: %.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

#: make bench-load   loading files against fio and read(), build/bench-load.json
bench-load: $(LOAD_BENCH) | deps-bench
	$(LOAD_BENCH) $(LOAD_FILE) $(LOAD_MIB) $(LOAD_ROUNDS) \
		$(BUILD)/bench-load.json

.PHONY: bench-load
