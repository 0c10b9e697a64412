# SPDX-License-Identifier: MIT
#
# The model of the slot state machine, and the mistakes it has to notice.

HOST_TESTS += tests/model/slots-model

tests/model/slots-model: | deps-model

#: make check-model  verify the model of the slot state machine
check-model:
	@tests/check model

suite-model: | deps-model
	@tests/run-tap model-slots tests/model/slots-model

LONG_SUITES += long-model
suite-long-model: | deps-model
	@TEST_LIMIT=3600 tests/run-tap long-model tests/model/slots-model --long

.PHONY: check-model suite-model suite-long-model
