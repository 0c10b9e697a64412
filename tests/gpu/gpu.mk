# SPDX-License-Identifier: MIT
#
# Tests of the library's CUDA half.  tests/gpu/*_case.c need no GPU: they run on
# a stand-in for CUDA that does what the test says, and once more with each
# sanitizer.  tests/gpu/real_*.c are for a machine with a GPU and CUDA's own
# compiler is not needed for them either.

GPU_CASES := $(patsubst tests/gpu/%_case.c,%,$(wildcard tests/gpu/*_case.c))
GPU_CASE_PROGRAMS := $(GPU_CASES:%=$(BUILD)/tests/gpu-%)
STANDIN := $(BUILD)/tests/standin
STANDIN_LIBS := $(STANDIN)/libcuda.so.1 $(STANDIN)/libcudart.so.13
STANDIN_FLAGS := -fPIC -shared -pthread -fvisibility=default \
	-Wno-missing-prototypes

GPU_SCRIPTS := $(wildcard tests/gpu/*_test.sh)

HOST_TESTS += $(GPU_CASE_PROGRAMS) $(GPU_SCRIPTS)
GUEST_TESTS += $(GPU_CASE_PROGRAMS)
GUEST_FILES += $(foreach l,$(STANDIN_LIBS),$(l):/tests/loaded/standin/$(notdir $(l)))

$(GPU_SCRIPTS): $(BUILD)/tarena $(BUILD)/tests/make-safetensors $(STANDIN_LIBS)

$(STANDIN)/libcuda.so.1: tests/gpu/standin_driver.c tests/gpu/standin_state.c
$(STANDIN)/libcudart.so.13: tests/gpu/standin_runtime.c $(STANDIN)/libcuda.so.1

$(STANDIN_LIBS): $(wildcard tests/gpu/standin*.h) | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(STANDIN_FLAGS) \
		-Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ \
		$(filter-out %.h,$^)

GPU_HARNESS := fixture

$(BUILD)/obj/tests/gpu/%.o: tests/gpu/%.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(GPU_CASE_PROGRAMS): $(BUILD)/tests/gpu-%: $(BUILD)/obj/tests/gpu/%_case.o \
		$(GPU_HARNESS:%=$(BUILD)/obj/tests/gpu/%.o) \
		$(LIB_HARNESS_OBJECTS) $(BUILD)/libtensorarena.so \
		| $(STANDIN_LIBS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,-rpath,'$$ORIGIN/..' -o $@ $^ \
		-lcmocka

# gpu-variant VARIANT: the same, built with a sanitizer
define gpu-variant
GPU_CASE_PROGRAMS_$(1) := $$(GPU_CASES:%=$$(BUILD)/tests/gpu-%-$(1))
HOST_TESTS += $$(GPU_CASE_PROGRAMS_$(1))

$$(GPU_CASE_PROGRAMS_$(1)): $$(BUILD)/tests/gpu-%-$(1): \
		$$(LIB_DIR_$(1))/tests/gpu/%_case.o \
		$$(GPU_HARNESS:%=$$(LIB_DIR_$(1))/tests/gpu/%.o) \
		$$(LIB_HARNESS:%=$$(LIB_DIR_$(1))/tests/lib/%.o) \
		$$(LIB_ARCHIVE_$(1)) | $$(STANDIN_LIBS)
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) $$(LIB_FLAGS_$(1)) -pthread -o $$@ $$^ \
		$$(LIB_LIBS) -lcmocka
endef

$(foreach v,$(LIB_VARIANTS),$(eval $(call gpu-variant,$(v))))

# ---- on a real GPU ----

# They need nothing but the C library, on a machine that may have nothing else.
GPU_REAL := $(BUILD)/tests/gpu-real
GPU_REAL_OBJECTS := $(patsubst tests/gpu/%.c,$(BUILD)/obj/tests/gpu/%.o, \
	$(wildcard tests/gpu/real_*.c))
GPU_BENCH := $(BUILD)/bench/gpu
GPU_TORCH := tests/gpu/torch_test.py
GPU_LIBRARY := $(BUILD)/tests/gpu-libtensorarena.so
programs: $(GPU_REAL) $(GPU_BENCH) $(GPU_LIBRARY)

$(GPU_REAL_OBJECTS): $(BUILD)/obj/tests/gpu/%.o: tests/gpu/%.c | deps-lib
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(GPU_REAL): $(BUILD)/obj/tests/gpu/real_test.o \
		$(BUILD)/obj/tests/gpu/real_cuda.o $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS_CARRIED)

$(GPU_BENCH): $(patsubst %,$(BUILD)/obj/tests/gpu/%.o, \
		real_bench real_cuda real_free real_idle) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS_CARRIED)

$(GPU_LIBRARY): $(LIB_OBJECTS) lib/libtensorarena.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread \
		-Wl,--version-script=lib/libtensorarena.map -Wl,-z,defs \
		-o $@ $(LIB_OBJECTS) $(LIB_LIBS_CARRIED)

# PyTorch's Python, if it is another.
GPU_PYTHON ?= python3

#: make check-gpu    the tests that need a GPU; skipped where there is none
check-gpu:
	@tests/check gpu

suite-gpu: $(GPU_REAL) $(GPU_LIBRARY)
	@tests/run-tap gpu-real $(GPU_REAL)
	@tests/run-tap gpu-torch env TENSORARENA_LIBRARY=$(GPU_LIBRARY) \
		$(GPU_PYTHON) $(GPU_TORCH)

#: make bench-gpu    figures of pinning, copies and releases, as JSON
bench-gpu: $(GPU_BENCH)
	@$(GPU_BENCH)

.PHONY: check-gpu suite-gpu bench-gpu
