#!/bin/sh
# SPDX-License-Identifier: MIT
#
# module/features.sh on made-up kernels and compilers: it says what is there, and
# never takes a compiler that fails for a kernel that lacks something.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"

cc=${CC:-gcc}
mkdir -p "$work/old/linux" "$work/new/linux"
for header in device gfp mm shrinker swap; do
	: >"$work/old/linux/$header.h"
	: >"$work/new/linux/$header.h"
done

# As much of a kernel as the questions name.
cat >"$work/old/linux/device.h" <<'END'
#define NULL ((void *)0)
#define GFP_KERNEL 0
#define VM_DONTCOPY 1
typedef unsigned short umode_t;
struct device;
struct vm_area_struct;
struct class {
	char *(*devnode)(struct device *dev, umode_t *mode);
};
#define class_create(owner, name) ((struct class *)(owner))
END
cat >"$work/new/linux/device.h" <<'END'
#define NULL ((void *)0)
#define GFP_KERNEL 0
#define VM_DONTCOPY 1
typedef unsigned short umode_t;
typedef unsigned int acr_flags_t;
#define ACR_FLAGS_NONE ((acr_flags_t)0)
struct device;
struct vm_area_struct;
struct class {
	char *(*devnode)(const struct device *dev, umode_t *mode);
};
struct class *class_create(const char *name);
void vm_flags_set(struct vm_area_struct *vma, unsigned long flags);
struct folio *folio_alloc_gigantic(int order, int gfp, int nid, void *nodes);
int alloc_contig_frozen_range(unsigned long start, unsigned long end,
			      acr_flags_t flags, int gfp);
struct shrinker *shrinker_alloc(unsigned int flags, const char *fmt, ...);
void mm_account_reclaimed_pages(unsigned long pages);
END

ask() {
	status=0
	sh module/features.sh "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
}

features() {
	sed -n 's/^#define TA_HAVE_\([A-Z_]*\) 1$/\1/p' "$work/stdout"
}

old_kernel() {
	ask "$cc" -I"$work/old"
	[ "$status" -eq 0 ] && [ -z "$(features)" ] && [ ! -s "$work/stderr" ]
}

new_kernel() {
	sed -n 's/^#line 1 "\(.*\)"/\1/p' module/features.c >"$work/all"
	[ -s "$work/all" ] || return 1
	ask "$cc" -I"$work/new"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] &&
		[ "$(features)" = "$(cat "$work/all")" ]
}

# one_missing LINE FEATURE: the new kernel without LINE lacks FEATURE only
one_missing() {
	cp -r "$work/new" "$work/backport"
	sed -i "/$1/d" "$work/backport/linux/device.h"
	ask "$cc" -I"$work/backport"
	rm -r "$work/backport"
	[ "$status" -eq 0 ] &&
		[ "$(features)" = "$(grep -vx "$2" "$work/all")" ]
}

compat_asks_for_no_other() {
	grep -ho 'TA_HAVE_[A-Z_]*' module/*.h | grep -vx 'TA_HAVE_' | sort -u |
		sed 's/^TA_HAVE_//' >"$work/used"
	sort "$work/all" | diff - "$work/used"
}

# refused COMPILER FLAG...: a clear reason, and no header
refused() {
	ask "$@"
	[ "$status" -ne 0 ] && [ -z "$(features)" ] &&
		grep -q 'features.sh: .* cannot compile' "$work/stderr"
}

# compiler TEXT STATUS: one that does nothing else
compiler() {
	printf '#!/bin/sh\necho "%s" >&2\nexit %s\n' "$1" "$2" >"$work/cc"
	chmod 755 "$work/cc"
}

check 'a kernel with none of it' old_kernel
check 'a kernel with all of it' new_kernel
check 'all but one' one_missing vm_flags_set VM_FLAGS_SET
check 'all but the last one' one_missing mm_account_reclaimed_pages \
	MM_ACCOUNT_RECLAIMED_PAGES
check 'what is asked is used, and the other way round' compat_asks_for_no_other
check 'no compiler' refused "$work/none"
check 'no headers' refused "$cc" -nostdinc
check 'a flag that the compiler does not know' refused "$cc" \
	-I"$work/new" -fno-such-flag
compiler '' 137
check 'a compiler that is killed' refused "$work/cc"
compiler 'features.c:7: internal compiler error: no' 4
check 'a compiler that breaks down' refused "$work/cc"
compiler 'device.h:7:1: error: no' 1
check 'an error in a header' refused "$work/cc"
compiler 'VM_FLAGS_SET:1:1: error: no
device.h:7:1: error: no' 1
check 'an error in a header, and a feature missing' refused "$work/cc"
finish
