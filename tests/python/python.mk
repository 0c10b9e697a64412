# SPDX-License-Identifier: MIT
#
# Tests of the Python package, with Debian's CPython, NumPy and PyTorch.  Those
# that need neither run once more on an extension with AddressSanitizer inside,
# and, as a whole, in the virtual machines.

PYTHON_TESTS := $(wildcard tests/python/*_test.py)
PYTHON_BARE := core fork leak lifetime pickling processes
PYTHON_TEST_FILES := $(wildcard tests/python/*.py)

HOST_TESTS += $(PYTHON_TESTS) tests/python/asan_test.sh \
	tests/python/package_test.sh

$(PYTHON_TESTS): | python deps-python-test
tests/python/stream_test.py: $(STANDIN_LIBS)
tests/python/package_test.sh: | python deps-python-test

# ---- the extension with AddressSanitizer ----

PYTHON_ASAN_DIR := $(BUILD)/python-asan/tensorarena
PYTHON_ASAN_OBJECTS := $(patsubst %.c,$(LIB_DIR_asan)/%.o, \
	$(sort $(wildcard python/src/*.c)))

$(PYTHON_ASAN_OBJECTS): CPPFLAGS += $$($(PYTHON)-config --includes)
$(PYTHON_ASAN_OBJECTS): | deps-build+python

$(PYTHON_ASAN_DIR)/_core.abi3.so: $(PYTHON_ASAN_OBJECTS) $(LIB_ARCHIVE_asan)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $(LIB_FLAGS_asan) -shared -pthread \
		-Wl,--exclude-libs,ALL -o $@ $^ $(LIB_STATIC_LIBS)

PYTHON_ASAN_FILES := $(patsubst python/%,$(BUILD)/python-asan/%, \
	$(wildcard python/tensorarena/*.py))

$(PYTHON_ASAN_FILES): $(BUILD)/python-asan/%: python/%
	@mkdir -p $(@D)
	cp $< $@

tests/python/asan_test.sh: $(PYTHON_ASAN_DIR)/_core.abi3.so \
	$(PYTHON_ASAN_FILES) $(STANDIN_LIBS)

programs: $(PYTHON_CORE)
