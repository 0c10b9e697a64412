# SPDX-License-Identifier: MIT
#
# Tests of the library.  tests/lib/*_test.c are about one part of it and need
# no engine.  tests/lib/*_case.c run on either engine, on the shared library as
# a program would use it.  tests/lib/lib-abi looks at the library from outside.
# Here, all are built once more with each sanitizer.

LIB_TESTS := $(patsubst tests/lib/%_test.c,%,$(wildcard tests/lib/*_test.c))
LIB_CASES := $(patsubst tests/lib/%_case.c,%,$(wildcard tests/lib/*_case.c))
LIB_HARNESS := harness actor file pattern
LIB_TEST_PROGRAMS := $(LIB_TESTS:%=$(BUILD)/tests/lib-%)
LIB_CASE_PROGRAMS := $(LIB_CASES:%=$(BUILD)/tests/engine-%)
LIB_HARNESS_OBJECTS := $(LIB_HARNESS:%=$(BUILD)/obj/tests/lib/%.o)

HOST_TESTS += $(LIB_TEST_PROGRAMS) $(LIB_CASE_PROGRAMS) tests/lib/lib-abi
GUEST_TESTS += $(LIB_CASE_PROGRAMS)

$(BUILD)/obj/tests/lib/%.o: tests/lib/%.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(LIB_TEST_PROGRAMS): $(BUILD)/tests/lib-%: $(BUILD)/obj/tests/lib/%_test.o \
		$(LIB_STATIC)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIB_LIBS) -lcmocka

$(LIB_CASE_PROGRAMS): $(BUILD)/tests/engine-%: \
		$(BUILD)/obj/tests/lib/%_case.o $(LIB_HARNESS_OBJECTS) \
		$(BUILD)/libtensorarena.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,-rpath,'$$ORIGIN/..' -o $@ $^ \
		-lcmocka

# Knows nothing of cmocka, so that other processors can have it, too.
$(BUILD)/tests/lib-copy_kernel: $(BUILD)/obj/tests/lib/copy_check.o

LIB_WITH_TASKS := copy copy_pool
$(LIB_WITH_TASKS:%=$(BUILD)/tests/lib-%) $(BUILD)/tests/engine-threads: \
		$(BUILD)/obj/tests/lib/tasks.o

LIB_ON_A_MACHINE := memory_check copy_cpus
$(LIB_ON_A_MACHINE:%=$(BUILD)/tests/lib-%): $(BUILD)/obj/tests/lib/machine.o

# Makes descriptors that the library would not.
$(BUILD)/tests/engine-foreign: $(BUILD)/obj/lib/tensor.o

LIB_VARIANTS := asan tsan
LIB_FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
LIB_FLAGS_tsan := -fsanitize=thread

# lib-variant VARIANT
define lib-variant
LIB_DIR_$(1) := $$(BUILD)/lib-$(1)
LIB_ARCHIVE_$(1) := $$(LIB_DIR_$(1))/libtensorarena.a
LIB_TEST_PROGRAMS_$(1) := $$(LIB_TESTS:%=$$(BUILD)/tests/lib-%-$(1))
LIB_CASE_PROGRAMS_$(1) := $$(LIB_CASES:%=$$(BUILD)/tests/engine-%-$(1))

$$(LIB_DIR_$(1))/%.o: %.c | deps-unit
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(LIB_FLAGS_$(1)) -fPIC -pthread -c \
		-o $$@ $$<

$$(LIB_ARCHIVE_$(1)): $$(LIB_SOURCES:%.c=$$(LIB_DIR_$(1))/%.o)
	rm -f $$@
	$$(AR) rcs $$@ $$^

$$(LIB_TEST_PROGRAMS_$(1)): $$(BUILD)/tests/lib-%-$(1): \
		$$(LIB_DIR_$(1))/tests/lib/%_test.o $$(LIB_ARCHIVE_$(1))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) $$(LIB_FLAGS_$(1)) -pthread -o $$@ $$^ \
		$$(LIB_LIBS) -lcmocka

$$(LIB_CASE_PROGRAMS_$(1)): $$(BUILD)/tests/engine-%-$(1): \
		$$(LIB_DIR_$(1))/tests/lib/%_case.o \
		$$(LIB_HARNESS:%=$$(LIB_DIR_$(1))/tests/lib/%.o) \
		$$(LIB_ARCHIVE_$(1))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) $$(LIB_FLAGS_$(1)) -pthread -o $$@ $$^ \
		$$(LIB_LIBS) -lcmocka

$$(BUILD)/tests/lib-copy_kernel-$(1): $$(LIB_DIR_$(1))/tests/lib/copy_check.o

$$(LIB_WITH_TASKS:%=$$(BUILD)/tests/lib-%-$(1)) \
		$$(BUILD)/tests/engine-threads-$(1): \
		$$(LIB_DIR_$(1))/tests/lib/tasks.o

$$(LIB_ON_A_MACHINE:%=$$(BUILD)/tests/lib-%-$(1)): \
		$$(LIB_DIR_$(1))/tests/lib/machine.o

HOST_TESTS += $$(LIB_TEST_PROGRAMS_$(1)) $$(LIB_CASE_PROGRAMS_$(1))
endef

$(foreach v,$(LIB_VARIANTS),$(eval $(call lib-variant,$(v))))

#: make lib-tests    only build the tests of the library
lib-tests: $(LIB_TEST_PROGRAMS) $(LIB_CASE_PROGRAMS) $(foreach v, \
	$(LIB_VARIANTS),$(LIB_TEST_PROGRAMS_$(v)) $(LIB_CASE_PROGRAMS_$(v)))

suite-host: lib

.PHONY: lib-tests
