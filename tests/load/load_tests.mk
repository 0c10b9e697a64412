# SPDX-License-Identifier: MIT
#
# Loading files where the system refuses or fails: in a sandbox, and with parts
# of the system replaced.  Built once more with each sanitizer.

LOAD_TESTS := $(patsubst tests/load/%_test.c,%,$(wildcard tests/load/*_test.c))
LOAD_OBJECTS := $(LIB_HARNESS:%=tests/lib/%) tests/load/common
LOAD_VARIANTS := plain $(LIB_VARIANTS)

LIB_DIR_plain := $(BUILD)/obj
LIB_ARCHIVE_plain := $(LIB_STATIC)

$(BUILD)/obj/tests/load/%.o: tests/load/%.c | deps-unit
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

# load-variant VARIANT
define load-variant
LOAD_PROGRAMS_$(1) := $$(LOAD_TESTS:%=$$(BUILD)/tests/load-%-$(1))

$$(LOAD_PROGRAMS_$(1)): $$(BUILD)/tests/load-%-$(1): \
		$$(LIB_DIR_$(1))/tests/load/%_test.o \
		$$(LOAD_OBJECTS:%=$$(LIB_DIR_$(1))/%.o) $$(LIB_ARCHIVE_$(1))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) $$(LIB_FLAGS_$(1)) -pthread -o $$@ $$^ \
		$$(LIB_LIBS) -lcmocka

$$(BUILD)/tests/load-faults-$(1): override LDFLAGS += \
	-Wl,--wrap=io_uring_submit,--wrap=io_uring_submit_and_wait \
	-Wl,--wrap=io_uring_queue_init_params \
	-Wl,--wrap=io_uring_register_buffers_update_tag \
	-Wl,--wrap=statx,--wrap=fstatfs,--wrap=open,--wrap=mmap \
	-Wl,--wrap=sched_getaffinity,--wrap=syscall

HOST_TESTS += $$(LOAD_PROGRAMS_$(1))
endef

$(foreach v,$(LOAD_VARIANTS),$(eval $(call load-variant,$(v))))

#: make load-tests   only build the tests of loading where that is hard
load-tests: $(foreach v,$(LOAD_VARIANTS),$(LOAD_PROGRAMS_$(v)))

.PHONY: load-tests
