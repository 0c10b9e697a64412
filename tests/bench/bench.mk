# SPDX-License-Identifier: MIT
#
# The benchmarks.  What they need at run time lies beside them, in
# build/bench, down to the shared libraries but for the C library's own: the
# directory may be carried to a machine that has none of the packages.

BENCH := $(BUILD)/bench
BENCH_PROGRAMS := $(BENCH)/ops
BENCH_OPS := $(patsubst %,$(BUILD)/obj/tests/bench/%.o, \
	ops ops_first ops_idle ops_report) $(BUILD)/obj/tools/number.o

$(BUILD)/obj/tests/bench/%.o: tests/bench/%.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(BENCH)/ops: $(BENCH_OPS)
$(BENCH)/ops: BENCH_LIBS := -ljansson

# Found also by the libraries for those that they need themselves.
$(BENCH_PROGRAMS): $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,--disable-new-dtags \
		-Wl,-rpath,'$$ORIGIN/lib' -o $@ $(filter %.o,$^) \
		$(LIB_STATIC) $(LIB_LIBS) $(BENCH_LIBS)

$(BENCH)/lib: tests/bench/carry $(BENCH_PROGRAMS)
	tests/bench/carry $@ $(BENCH_PROGRAMS)

#: make bench-programs  only build the benchmarks; build/bench can be carried
bench-programs: $(BENCH_PROGRAMS) $(BENCH)/lib

programs: $(BENCH_PROGRAMS)

.PHONY: bench-programs
