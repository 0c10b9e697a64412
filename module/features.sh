#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Asks the compiler which of the features in features.c the kernel at hand has:
# distributions carry features to kernels whose version says they have none.
#
#   module/features.sh COMPILER FLAG...
#
# The flags are those of the kernel's build system.  To standard output goes a
# header for compat.h, in which TA_HAVE_<FEATURE> is defined for a yes.

set -eu
questions=${0%/*}/features.c

status=0
answers=$(LC_ALL=C "$@" -fsyntax-only -Werror=implicit-function-declaration \
	-Werror=incompatible-pointer-types "$questions" 2>&1) || status=$?

# has_error FEATURE
has_error() {
	echo "$answers" | grep -qE "^$1:[0-9:]+ (fatal )?error:"
}

# What is wrong outside of any feature would make each kernel look like an old
# one, or like a new one.
if echo "$answers" | grep -vE '^[A-Z_]+:' | grep -q 'error:' ||
	{ [ "$status" -ne 0 ] && ! has_error '[A-Z_]+'; }; then
	echo "$answers" >&2
	echo "features.sh: $1 ended with $status, cannot compile for this kernel" >&2
	exit 1
fi

echo '/* SPDX-License-Identifier: GPL-2.0-only */'
echo '/* Written by features.sh. */'
sed -n 's/^#line 1 "\(.*\)"/\1/p' "$questions" | while read -r feature; do
	has_error "$feature" || echo "#define TA_HAVE_$feature 1"
done
