# SPDX-License-Identifier: MIT
#
# The threat model's tests are where what they test is.  This holds the claims
# and the tests together.

HOST_TESTS += tests/security/claims
