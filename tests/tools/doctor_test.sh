#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena doctor on systems that lack one thing each: it finds which, and says what
# to do about it.  A note and a trouble are never without advice.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

release=$(uname -r)

# system: a fresh one, on which nothing is installed
system() {
	rm -rf "$work/root"
	mkdir -p "$work/root/lib/modules/$release" "$work/root/usr/src" \
		"$work/root/sys/kernel/security" "$work/root/run"
	export TENSORARENA_ROOT="$work/root"
	export TENSORARENA_DEVICE="$work/node"
	rm -rf "$work/node"
}

put_file() {
	mkdir -p "$work/root$(dirname "$1")"
	echo "${2-}" >"$work/root$1"
}

# says VERDICT PATTERN, advises PATTERN
says() {
	grep -q "^$1  .*$2" "$work/stdout" && return
	cat "$work/stdout"
	echo "no '$1' with: $2"
	return 1
}

advises() {
	says 'do  ' "$1"
}

# Every note or trouble is followed by what to do.
all_advised() {
	[ "$status" -eq 0 ] && awk '
		/^(note|bad)/ { if (open) exit 1; open = 1; next }
		/^do/ { open = 0; next }
		/^ok/ { if (open) exit 1; next }
		{ exit 1 }
		END { if (open) exit 1 }' "$work/stdout" && return
	cat "$work/stdout"
	return 1
}

not_installed() {
	system
	run doctor
	all_advised && says note 'is not loaded (there is no .*node)' &&
		advises 'apt-get install tensorarena-dkms'
}
check 'the package is not installed' not_installed

no_headers() {
	system
	put_file /usr/src/tensorarena-0.1.0/dkms.conf
	run doctor
	advises "apt-get install linux-headers-$release" &&
		advises "dkms autoinstall -k $release"
}
check 'the headers of the kernel are missing' no_headers

not_built() {
	system
	put_file /usr/src/tensorarena-0.1.0/dkms.conf
	put_file "/lib/modules/$release/build/Makefile"
	run doctor
	all_advised && advises "dkms autoinstall -k $release" &&
		! grep -q linux-headers "$work/stdout"
}
check 'the module is not built for this kernel' not_built

not_loaded() {
	system
	put_file "/lib/modules/$release/updates/dkms/tensorarena.ko.xz"
	run doctor
	all_advised && advises 'as root: modprobe tensorarena$'
}
check 'the module is built and not loaded' not_loaded

# efi_variable VALUE: of Secure Boot, as an octal escape
efi_variable() {
	vars=$work/root/sys/firmware/efi/efivars
	mkdir -p "$vars"
	# shellcheck disable=SC2059
	printf "\\006\\000\\000\\000\\$1" \
		>"$vars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
}

secure_boot() {
	system
	put_file "/lib/modules/$release/updates/dkms/tensorarena.ko"
	put_file /sys/kernel/security/lockdown 'none [integrity] confidentiality'
	efi_variable 001
	run doctor
	all_advised && advises 'Secure Boot is on: ' &&
		advises 'mokutil --import /var/lib/dkms/mok.pub' || return
	efi_variable 000
	put_file /sys/kernel/security/lockdown '[none] integrity confidentiality'
	run doctor
	all_advised && advises 'as root: modprobe tensorarena$'
}
check 'the firmware does not trust the key of the module' secure_boot

signatures() {
	system
	put_file "/lib/modules/$release/updates/dkms/tensorarena.ko"
	put_file /sys/kernel/security/lockdown 'none [integrity] confidentiality'
	run doctor
	all_advised && advises 'only signed modules, though Secure Boot is off' ||
		return
	rm "$work/root/sys/kernel/security/lockdown"
	put_file /sys/module/module/parameters/sig_enforce Y
	run doctor
	all_advised && advises 'without lockdown and module.sig_enforce'
}
check 'the kernel wants a signature without Secure Boot' signatures

container() {
	system
	put_file /run/.containerenv
	run doctor
	all_advised && advises "start the container with --device $work/node"
}
check 'in a container the host has to give the device' container

refused() {
	system
	: >"$work/node"
	chmod 0 "$work/node"
	chmod 755 "$work"
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid 65534 --regid 65534 --clear-groups \
			"$tarena" doctor >"$work/stdout" 2>"$work/stderr"
		user=nobody
	else
		"$tarena" doctor >"$work/stdout" 2>"$work/stderr"
		user=$(id -un)
	fi
	status=$?
	all_advised && says note "node is there, but $user may not open it" &&
		advises "usermod --append --groups tensorarena $user, then log"
}
check 'the user is not in the group' refused

foreign() {
	system
	: >"$work/node"
	run doctor
	cat "$work/stdout"
	grep -q '^bad .*node does not answer' "$work/stdout" &&
		advises 'node of another driver'
}
check 'the node is of something else' foreign

another_version() {
	system
	: >"$work/node"
	put_file /sys/module/tensorarena/version 9.8.7
	run doctor
	says note 'is version 9.8.7, this command version' &&
		advises 'modprobe -r tensorarena && modprobe tensorarena'
}
check 'the module that is loaded is another version' another_version

huge_pages() {
	system
	put_file /sys/kernel/mm/transparent_hugepage/shmem_enabled \
		'always within_size [advise] never deny force'
	run doctor
	all_advised && says 'ok  ' 'the embedded engine may use huge pages' ||
		return
	put_file /sys/kernel/mm/transparent_hugepage/shmem_enabled '[never]'
	run doctor
	all_advised && advises 'echo advise >/sys/kernel/mm/transparent_huge'
}
check 'the embedded engine gets no huge pages' huge_pages

wsl() {
	system
	put_file /proc/version 'Linux version 6.6.1-microsoft-standard-WSL2'
	run doctor
	all_advised && says note 'this is WSL' && advises TA_WRITABLE_READERS
}
check 'this is WSL' wsl

little_memory() {
	system
	prlimit --as=1500000000 "$tarena" doctor >"$work/stdout" \
		2>"$work/stderr"
	status=$?
	all_advised && says note 'default size cannot be created' &&
		says 'ok  ' 'a small one can' &&
		advises 'fewer or smaller slots'
}
check 'there is no room for an arena of the default size' little_memory

finish
