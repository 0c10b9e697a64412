# SPDX-License-Identifier: MIT
#
# The campaigns at length, and the table of what they found.

CAMPAIGN_TESTS = $(KILL_TESTS) $(OPFUZZ) $(SOAK)

LONG_SUITES += long-host $(addprefix long-vm-,$(HOST_KERNELS))

# Ten minutes of the soak, six million operations of the fuzzer.
suite-long-host:
	@$(MAKE) --no-print-directory $(CAMPAIGN_TESTS)
	@for program in $(CAMPAIGN_TESTS); do \
		TENSORARENA_LENGTH=300 TEST_LIMIT=7200 tests/run-tap \
			long-host-$${program##*/} env \
			TENSORARENA_TEST_ENGINE=embedded $$program || exit; \
	done

$(addprefix suite-long-vm-,$(KERNELS)): suite-long-vm-%: \
		$(BUILD)/module-%/tensorarena.ko | deps-vm
	@$(MAKE) --no-print-directory $(BUILD)/vm/poweroff $(CAMPAIGN_TESTS) \
		$(RACE_TESTS) $(RACE_BARE_TESTS)
	@VM_LIMIT=14400 TEST_LIMIT=7200 TEST_ENV=TENSORARENA_LENGTH=10 \
		RESULT_PREFIX=long-vm tests/vm/run-tests $* $(CAMPAIGN_TESTS) \
		$(RACE_TESTS) -- $(RACE_BARE_TESTS)

#: make reliability  docs/reliability.md, from docs/results
reliability:
	tests/campaign/table

.PHONY: suite-long-host reliability \
	$(addprefix suite-long-vm-,$(KERNELS))
