# SPDX-License-Identifier: MIT
#
# perf and bpftrace on the module's tracepoints, in the virtual machine.  Not part
# of `make check`: the image is large.

TRACING := $(BUILD)/tracing
TRACING_FILES := /usr/bin/perf:/bin/perf /usr/bin/bpftrace:/bin/bpftrace \
	tools/trace/publish-to-release.bt:/publish-to-release.bt \
	module/trace.h:/trace.h \
	$(TRACING)/workload:/bin/workload

$(TRACING)/workload: tests/tracing/workload.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/selftests $(CFLAGS) -static -o $@ $<

#: make check-tracing perf and bpftrace on the tracepoints, in a VM
check-tracing:
	@VM_MEMORY=3G tests/check tracing-$(KERNEL)

$(addprefix suite-tracing-,$(KERNELS)): suite-tracing-%: \
		$(BUILD)/module-%/tensorarena.ko $(BUILD)/vm/poweroff \
		$(TRACING)/workload | deps-vm+tracing
	@RESULT_PREFIX=tracing GUEST_FILES='$(TRACING_FILES)' \
		tests/vm/run-tests $* tests/tracing/tools_guest.sh --

.PHONY: check-tracing $(addprefix suite-tracing-,$(KERNELS))
programs: $(TRACING)/workload
