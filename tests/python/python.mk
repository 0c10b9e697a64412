# SPDX-License-Identifier: MIT
#
# Tests of the Python package, with Debian's CPython, NumPy and PyTorch.  Those
# that need neither run once more on an extension with AddressSanitizer inside,
# and, as a whole, in the virtual machines.

PYTHON_GPU_TEST := tests/python/gpu_test.py
PYTHON_TESTS := $(filter-out $(PYTHON_GPU_TEST), \
	$(wildcard tests/python/*_test.py))

HOST_TESTS += $(PYTHON_TESTS) tests/python/asan_test.sh \
	tests/python/package_test.sh

$(PYTHON_TESTS): | python deps-python-test
tests/python/stream_test.py: $(STANDIN_LIBS)
tests/python/package_test.sh: | python deps-python-test

# ---- the half of the extension that knows no Python, with each sanitizer ----

PYTHON_MEMORY := $(addprefix python/src/,end memory reaper stream)
PYTHON_MEMORY_TEST := $(BUILD)/tests/python-memory
HOST_TESTS += $(PYTHON_MEMORY_TEST)

$(BUILD)/obj/tests/python/memory_test.o: tests/python/memory_test.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(PYTHON_MEMORY_TEST): $(patsubst %,$(BUILD)/obj/%.o, \
		tests/python/memory_test $(PYTHON_MEMORY)) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS) -lcmocka

# python-variant VARIANT
define python-variant
HOST_TESTS += $(PYTHON_MEMORY_TEST)-$(1)

$(PYTHON_MEMORY_TEST)-$(1): $$(patsubst %,$$(LIB_DIR_$(1))/%.o, \
		tests/python/memory_test $$(PYTHON_MEMORY)) \
		$$(LIB_ARCHIVE_$(1))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) $$(LIB_FLAGS_$(1)) -pthread -o $$@ $$^ \
		$$(LIB_LIBS) -lcmocka
endef

$(foreach v,$(LIB_VARIANTS),$(eval $(call python-variant,$(v))))

# ---- the extension with AddressSanitizer ----

PYTHON_ASAN_DIR := $(BUILD)/python-asan/tensorarena
PYTHON_ASAN_OBJECTS := $(patsubst %.c,$(LIB_DIR_asan)/%.o, \
	$(sort $(wildcard python/src/*.c)))

$(PYTHON_ASAN_OBJECTS): CPPFLAGS += $$($(PYTHON)-config --includes)
$(PYTHON_ASAN_OBJECTS): | deps-build+python

$(PYTHON_ASAN_DIR)/_core.abi3.so: $(PYTHON_ASAN_OBJECTS) $(LIB_ARCHIVE_asan)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $(LIB_FLAGS_asan) -shared -pthread \
		-Wl,--exclude-libs,ALL -o $@ $^ $(LIB_LIBS)

PYTHON_ASAN_FILES := $(patsubst python/%,$(BUILD)/python-asan/%, \
	$(wildcard python/tensorarena/*.py python/tensorarena/*/*.py))

$(PYTHON_ASAN_FILES): $(BUILD)/python-asan/%: python/%
	@mkdir -p $(@D)
	cp $< $@

tests/python/asan_test.sh: $(PYTHON_ASAN_DIR)/_core.abi3.so \
	$(PYTHON_ASAN_FILES) $(STANDIN_LIBS)

programs: $(PYTHON_CORE)

# ---- on a GPU, with that machine's own Python and PyTorch ----

suite-gpu: suite-gpu-python

suite-gpu-python: python
	@tests/run-tap gpu-python python3 -B $(PYTHON_GPU_TEST)

.PHONY: suite-gpu-python

# ---- in the virtual machines ----

PYTHON_GUEST := core fork lifetime pickling processes queue ring words
PYTHON_GUEST_ZIP := $(BUILD)/tests/python-guest.zip
PYTHON_GUEST_LIB := /usr/lib/python3.11
PYTHON_GUEST_LOADED := $(addprefix lib-dynload/,$(addsuffix \
	.cpython-311-x86_64-linux-gnu.so,_ctypes _multiprocessing _posixshmem \
	mmap))

# What of Debian's pyzmq is imported.
PYTHON_GUEST_ZMQ := $(addprefix /usr/lib/python3/dist-packages/zmq/, \
	$(addsuffix .py,__init__ _typing constants error $(addprefix backend/, \
		__init__ select cython/__init__) $(addprefix sugar/, \
		__init__ attrsettr context frame poll socket stopwatch \
		tracker version) $(addprefix utils/,__init__ garbage jsonapi)) \
	$(addprefix backend/cython/,$(addsuffix \
		.cpython-311-x86_64-linux-gnu.so,_device _poll \
		_proxy_steerable _version context error message socket utils)))

# The C library loads it when a thread is made to end early.
PYTHON_GUEST_GCC := /lib/x86_64-linux-gnu/libgcc_s.so.1

GUEST_TESTS += $(PYTHON_GUEST:%=tests/python/%_test.py)
GUEST_FILES += $(PYTHON):$(PYTHON) \
	$(PYTHON_GUEST_ZIP):/usr/lib/python311.zip \
	$(foreach f,os.py $(PYTHON_GUEST_LOADED), \
		$(PYTHON_GUEST_LIB)/$(f):$(PYTHON_GUEST_LIB)/$(f)) \
	$(foreach f,$(PYTHON_GUEST_ZMQ),$(f):$(f)) \
	$(foreach f,$(patsubst $(PYTHON_DIR)/%,%,$(PYTHON_FILES) $(PYTHON_CORE)), \
		$(PYTHON_DIR)/$(f):/build/python/tensorarena/$(f)) \
	$(foreach f,harness exit_case, \
		tests/python/$(f).py:/tests/loaded/$(f).py) \
	$(PYTHON_GUEST_GCC):$(PYTHON_GUEST_GCC)

$(PYTHON_GUEST:%=tests/python/%_test.py): | $(PYTHON_GUEST_ZIP)

$(PYTHON_GUEST_ZIP): tests/python/guest-python | deps-python+python-test
	@mkdir -p $(@D)
	$< $@
