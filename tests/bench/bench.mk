# SPDX-License-Identifier: MIT
#
# The benchmarks.  What they need at run time lies beside them, in
# build/bench, down to the shared libraries but for the C library's own: the
# directory may be carried to a machine that has none of the packages.

BENCH := $(BUILD)/bench
BENCH_PROGRAMS := $(BENCH)/broadcast $(BENCH)/ops
BENCH_FILES := $(BENCH)/touch.so $(BENCH)/pickle_peer.py $(BENCH)/iox-roudi
BENCH_BROADCAST := $(patsubst %,$(BUILD)/obj/tests/bench/%.o, \
	arena broadcast bus contenders copies gpu group iceoryx machine main \
	memcpy message options paths pickle pinned plan process raw roudi shm \
	socket touch) $(patsubst %,$(BUILD)/obj/tools/%.o,complain cuda number)
BENCH_OPS := $(patsubst %,$(BUILD)/obj/tests/bench/%.o, \
	ops ops_first ops_idle ops_report) $(BUILD)/obj/tools/number.o

$(BUILD)/obj/tests/bench/%.o: tests/bench/%.c | deps-build+bench
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

# The header's path has the version in it.
$(BUILD)/obj/tests/bench/iceoryx.o: CPPFLAGS += \
	$(addprefix -isystem ,$(wildcard /usr/include/iceoryx/v*))

# The loops over bytes are to be as fast as they can.
$(BUILD)/obj/tests/bench/touch.o: override CFLAGS += -O3

$(BENCH)/broadcast: $(BENCH_BROADCAST)
$(BENCH)/broadcast: BENCH_LIBS := -lzmq -liceoryx_binding_c -ljansson -lm
$(BENCH)/ops: $(BENCH_OPS)
$(BENCH)/ops: BENCH_LIBS := -ljansson

# Found also by the libraries for those that they need themselves.
$(BENCH_PROGRAMS): $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,--disable-new-dtags \
		-Wl,-rpath,'$$ORIGIN/lib' -o $@ $(filter %.o,$^) \
		$(LIB_STATIC) $(LIB_LIBS) $(BENCH_LIBS)

$(BENCH)/touch.so: tests/bench/touch.c | deps-build+bench
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -O3 $(LDFLAGS) -fPIC -shared -o $@ $<

$(BENCH)/pickle_peer.py $(BENCH)/iox-roudi: $(BENCH)/%: tests/bench/%
	@mkdir -p $(@D)
	cp $< $@

$(BENCH)/lib: tests/bench/carry $(BENCH_PROGRAMS)
	tests/bench/carry $@ $(BENCH_PROGRAMS) iox-roudi

#: make bench-programs  only build the benchmarks; build/bench can be carried
bench-programs: $(BENCH_PROGRAMS) $(BENCH_FILES) $(BENCH)/lib

BENCH_TESTS := tests/bench/bench_test.sh tests/bench/figures_test.py
HOST_TESTS += $(BENCH_TESTS)

$(BENCH_TESTS): $(BENCH_PROGRAMS) $(BENCH_FILES) $(BENCH)/lib \
	$(addprefix $(BUILD)/tests/standin/,libcuda.so.1 libcudart.so.13)

programs: $(BENCH_PROGRAMS) $(BENCH)/touch.so

comma := ,

# Quick: what the targets need, on two cores in less than a minute.
BENCH_BROADCAST_ARGS := $(if $(QUICK),--sizes 204800 --modes pointer \
	--rounds 15 --budget 20 --contenders \
	'arena:1+4+8$(comma)socket:1+4$(comma)shm:1+4$(comma)iceoryx:1+4$(comma)memcpy$(comma)best copy')
BENCH_MESSAGE_ARGS := --contenders 'message,message beside arena' --sizes 1 \
	--readers 1,4,8 --modes pointer --rounds 1000
BENCH_OPS_ARGS := --rounds $(if $(QUICK),200,400)
BENCH_RECORDS := $(BENCH)/broadcast.json $(BENCH)/messages.json \
	$(BENCH)/ops.json

#: make bench        against every peer: tables, build/bench.json, plots; QUICK=1
bench:
	+@$(MAKE) --no-print-directory -j$$(nproc) bench-programs
	@rm -f $(BENCH_RECORDS) $(BENCH)/*.svg
	$(BENCH)/broadcast --json $(BENCH)/broadcast.json $(BENCH_BROADCAST_ARGS)
	$(BENCH)/broadcast --json $(BENCH)/messages.json $(BENCH_MESSAGE_ARGS)
	$(BENCH)/ops --json $(BENCH)/ops.json $(BENCH_OPS_ARGS)
	tests/bench/report --json $(BUILD)/bench.json --plots $(BENCH) \
		$(BENCH_RECORDS)

.PHONY: bench bench-programs
