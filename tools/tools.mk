# SPDX-License-Identifier: MIT
#
# The tarena command.  It uses the shared library that lies beside it, so that
# both run in place.

TARENA := $(BUILD)/tarena
TARENA_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tools/*.c)))
TARENA_LIBS := -ljansson -ljpeg -lxxhash -lmicrohttpd -lncursesw -ltinfo -lm

#: make tools        the tarena command
tools: $(TARENA)
ALL += tools

# The loops over pixels are worth vectorising.
$(BUILD)/obj/tools/preprocess.o $(BUILD)/obj/tools/preprocess_resample.o: \
	override CFLAGS += -O3
$(BUILD)/obj/tools/tarena.o $(BUILD)/obj/tools/doctor_module.o: \
	CPPFLAGS += -DTARENA_VERSION='"$(VERSION)"'

$(TARENA_OBJECTS): $(BUILD)/obj/%.o: %.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(TARENA): $(TARENA_OBJECTS) $(BUILD)/libtensorarena.so
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,-rpath,'$$ORIGIN' -o $@ \
		$(TARENA_OBJECTS) -L$(BUILD) -ltensorarena $(TARENA_LIBS)

# The photograph of the demonstration, 5640 x 3172, from a Debian package.
PHOTO := $(BUILD)/demo/Elephants_5640x3172.jpg

$(PHOTO):
	tools/fetch-photo $(@D) $(@F)

#: make demo         the main job: a photograph to four workers
demo: $(TARENA) $(PHOTO)
	$(TARENA) broadcast $(PHOTO) --readers 4 --repeat 5

.PHONY: tools demo
