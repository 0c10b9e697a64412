# SPDX-License-Identifier: MIT
#
# The Python package, usable in place with PYTHONPATH=build/python.  The
# extension has the library inside, and what the library needs: it takes nothing
# but the C library and any CPython from 3.11 on.

PYTHON := /usr/bin/python3
PYTHON_DIR := $(BUILD)/python/tensorarena
PYTHON_CORE := $(PYTHON_DIR)/_core.abi3.so
PYTHON_FILES := $(patsubst python/%,$(BUILD)/python/%, \
	$(wildcard python/tensorarena/*.py python/tensorarena/*/*.py \
		python/tensorarena/*.pyi) \
	python/tensorarena/py.typed)
PYTHON_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o, \
	$(sort $(wildcard python/src/*.c)))

#: make python       the Python package, into build/python
python: $(PYTHON_CORE) $(PYTHON_FILES)

$(PYTHON_OBJECTS): $(BUILD)/obj/%.o: %.c | deps-build+python
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $$($(PYTHON)-config --includes) $(CFLAGS) -fPIC \
		-fvisibility=hidden -pthread -c -o $@ $<

$(PYTHON_CORE): $(PYTHON_OBJECTS) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,--exclude-libs,ALL \
		-Wl,-z,now -o $@ $^ $(LIB_LIBS_CARRIED)

$(PYTHON_FILES): $(BUILD)/python/%: python/%
	@mkdir -p $(@D)
	cp $< $@

#: make wheel        the same as source distribution and wheel, into build/dist
wheel: | deps-build+python+python-test
	python/make-dist $(BUILD)/dist

.PHONY: python wheel
