# SPDX-License-Identifier: MIT
#
# The device engine, which needs the module, in the test machine.  There the
# clock ticks once an instruction of its one processor, whichever process it is
# in, so figures are instructions, the same on every host; see module_ops.mk.

BENCH_VM_TAP := $(RESULTS)/vm-$(KERNEL)-in-vm.tap
BENCH_VM_RECORDS := $(patsubst %,$(BENCH)/vm-$(KERNEL)-%.json,ops broadcast)

#: make bench-vm     the same on the module, in instructions; KERNEL=6.1
bench-vm: $(BUILD)/module-$(KERNEL)/tensorarena.ko $(BUILD)/vm/poweroff \
		$(BENCH_PROGRAMS) $(BENCH)/lib | deps-vm+unit
	@rm -f $(BENCH_VM_TAP) $(BENCH_VM_RECORDS)
	@VM_CPUS=1 VM_ACCEL=tcg VM_ARGS='-icount shift=0,sleep=off' \
		GUEST_FILES='$(foreach p,$(BENCH_PROGRAMS),$(p):/bench/$(notdir $(p)))' \
		tests/vm/run-tests $(KERNEL) tests/bench/in-vm --
	@tests/summary $(BENCH_VM_TAP)
	@for kind in ops broadcast; do \
		sed -n "s/^# $$kind //p" $(BENCH_VM_TAP) | \
			jq -c '.clock = "instructions"' \
			>$(BENCH)/vm-$(KERNEL)-$$kind.json || exit; \
	done
	tests/bench/report --json $(BUILD)/bench-vm-$(KERNEL).json \
		$(BENCH_VM_RECORDS)

.PHONY: bench-vm
