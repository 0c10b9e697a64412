# SPDX-License-Identifier: MIT
#
# Fuzz targets, for clang's libFuzzer: everything here that parses what comes
# from outside.  fuzz_X.c is target X; its line says what it needs of the rest.
# A further target is one file, one line, and a file in corpus/.

FUZZ_CC := clang
FUZZ_FLAGS := -O1 -g -fno-omit-frame-pointer -DTA_ATTACH_MS=1 \
	-fsanitize=address,undefined -fno-sanitize-recover=all

# What reads files, all kinds together: a further kind of file belongs here.
FUZZ_FRONT := lib/tensor.c $(addprefix tools/,checksum.c complain.c input.c \
	input_file.c \
	input_jpeg.c input_npy.c input_raw.c input_safetensors.c npy.c \
	preprocess.c preprocess_plan.c preprocess_resample.c safetensors.c stop.c)
FUZZ_handle := lib/handle.c
FUZZ_tensor := lib/tensor.c
FUZZ_wire := lib/wire.c
# Has parts of its own for these.
FUZZ_server := $(filter-out lib/embedded_server.c lib/memory_check.c, \
	$(LIB_SOURCES))
FUZZ_reader := $(LIB_SOURCES)
FUZZ_npy := $(FUZZ_FRONT)
FUZZ_jpeg := $(FUZZ_FRONT)
FUZZ_safetensors := $(FUZZ_FRONT)

FUZZ_TARGETS := handle tensor wire server reader npy jpeg \
	safetensors
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)

$(BUILD)/fuzz/obj/%.o: %.c | deps-fuzz
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS) $(CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link \
		-pthread -c -o $@ $<

# fuzz-target NAME
define fuzz-target
$$(BUILD)/fuzz/$(1): $$(patsubst %.c,$$(BUILD)/fuzz/obj/%.o, \
		$$(FUZZ_$(1)) tests/fuzz/fuzz_$(1).c)
	$$(FUZZ_CC) $$(CFLAGS) $$(LDFLAGS) $$(FUZZ_FLAGS) -fsanitize=fuzzer \
		-pthread -o $$@ $$^ $$(LIB_LIBS) -ljpeg -ljansson \
		-lxxhash -lm
endef

$(BUILD)/fuzz/server: override LDFLAGS += -Wl,--wrap=madvise

$(foreach t,$(FUZZ_TARGETS),$(eval $(call fuzz-target,$(t))))

HOST_TESTS += tests/fuzz/fuzz-replay tests/fuzz/syzlang-agrees
tests/fuzz/fuzz-replay: $(FUZZ_PROGRAMS)

#: make fuzz FUZZ=npy SECONDS=600  look for what breaks a target
FUZZ := npy
SECONDS := 60
fuzz: $(BUILD)/fuzz/$(FUZZ)
	@tests/fuzz/fuzz $(FUZZ) $(SECONDS)

.PHONY: fuzz
.SECONDARY: $(FUZZ_PROGRAMS)
