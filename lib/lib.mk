# SPDX-License-Identifier: MIT
#
# libtensorarena, shared and static, from the same position-independent
# objects.  The slot state machine is the kernel module's own source.
#
# What links the static library needs $(LIB_LIBS) as well.

LIB_SONAME := libtensorarena.so.0
LIB_SHARED := $(BUILD)/$(LIB_SONAME)
LIB_STATIC := $(BUILD)/libtensorarena.a
LIB_PC := $(BUILD)/libtensorarena.pc
LIB_SOURCES := $(sort $(wildcard lib/*.c)) module/slots.c
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/obj/%.o)
LIB_LIBS := -luring
# For programs that are carried to machines without it.
LIB_LIBS_CARRIED := -Wl,-Bstatic $(LIB_LIBS) -Wl,-Bdynamic

#: make lib          libtensorarena, shared and static, and its .pc file
lib: $(LIB_SHARED) $(BUILD)/libtensorarena.so $(LIB_STATIC) $(LIB_PC)
ALL += lib

$(LIB_OBJECTS): $(BUILD)/obj/%.o: %.c | deps-lib
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -pthread -c -o $@ $<

# Nothing may be left for the linker to find elsewhere but the C library and
# liburing.
$(LIB_SHARED): $(LIB_OBJECTS) lib/libtensorarena.map
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,$(LIB_SONAME) \
		-Wl,--version-script=lib/libtensorarena.map \
		-Wl,-z,defs -Wl,-z,now -o $@ $(LIB_OBJECTS) $(LIB_LIBS)

$(BUILD)/libtensorarena.so: $(LIB_SHARED)
	ln -sf $(LIB_SONAME) $@

$(LIB_STATIC): $(LIB_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $(LIB_OBJECTS)

# As built, it describes the tree in place.
$(LIB_PC): lib/libtensorarena.pc.in
	@mkdir -p $(@D)
	sed -e 's|@PREFIX@|$(CURDIR)|' \
		-e 's|@INCLUDEDIR@|$${prefix}/lib/include|' \
		-e 's|@LIBDIR@|$${prefix}/$(BUILD)|' \
		-e 's|@VERSION@|$(VERSION)|' $< >$@

.PHONY: lib
