# SPDX-License-Identifier: MIT
#
# The embedded engine, through its own interface and its socket.  It is compiled
# anew for these tests: with a shorter wait for connections that do not attach,
# and once more with each sanitizer.

EMBEDDED_TESTS := $(patsubst tests/embedded/%_test.c,%, \
	$(wildcard tests/embedded/*_test.c))
EMBEDDED_SOURCES := $(sort $(wildcard lib/embedded*.c)) lib/wire.c lib/pidfd.c \
	lib/copy_cpus.c lib/cgroup.c \
	lib/handle.c module/slots.c tests/embedded/fixture.c
EMBEDDED_VARIANTS := plain asan tsan

EMBEDDED_FLAGS_plain :=
EMBEDDED_FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
EMBEDDED_FLAGS_tsan := -fsanitize=thread

# embedded-variant VARIANT
define embedded-variant
EMBEDDED_PROGRAMS_$(1) := $$(patsubst %,$$(BUILD)/tests/embedded-%-$(1), \
	$$(EMBEDDED_TESTS))
EMBEDDED_OBJECTS_$(1) := $$(patsubst %.c,$$(BUILD)/embedded-$(1)/%.o, \
	$$(EMBEDDED_SOURCES))

$$(BUILD)/embedded-$(1)/%.o: %.c | deps-unit
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) -DTA_ATTACH_MS=3000 $$(CFLAGS) \
		$$(EMBEDDED_FLAGS_$(1)) -pthread -c -o $$@ $$<

$$(EMBEDDED_PROGRAMS_$(1)): $$(BUILD)/tests/embedded-%-$(1): \
		$$(BUILD)/embedded-$(1)/tests/embedded/%_test.o \
		$$(EMBEDDED_OBJECTS_$(1))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) $$(EMBEDDED_FLAGS_$(1)) -pthread \
		-o $$@ $$^ -lcmocka

$$(BUILD)/tests/embedded-shortage-$(1): override LDFLAGS += \
	-Wl,--wrap=ftruncate,--wrap=madvise,--wrap=memfd_create \
	-Wl,--wrap=sendmsg,--wrap=mmap,--wrap=open

$$(BUILD)/tests/embedded-populate-$(1): override LDFLAGS += \
	-Wl,--wrap=madvise,--wrap=pthread_create

$$(BUILD)/tests/embedded-hostile_peers-$(1): override LDFLAGS += \
	-Wl,--wrap=accept4

HOST_TESTS += $$(EMBEDDED_PROGRAMS_$(1))
.SECONDARY: $$(EMBEDDED_OBJECTS_$(1))
endef

$(foreach v,$(EMBEDDED_VARIANTS),$(eval $(call embedded-variant,$(v))))

#: make embedded-tests  only build the tests of the embedded engine
embedded-tests: $(foreach v,$(EMBEDDED_VARIANTS),$(EMBEDDED_PROGRAMS_$(v)))

.PHONY: embedded-tests
