# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# The packages on the kernel they were installed for.  Sourced by guest_main.sh.

# guest_main.sh's check calls the functions.
# shellcheck disable=SC2317

loaded_by_itself() {
	lsmod | grep tensorarena
}

for_the_group() {
	ls -l /dev/tensorarena
	[ "$(stat -c '%a %U %G' /dev/tensorarena)" = '660 root tensorarena' ]
}

# All is well but for the GPU that is not there.
healthy() {
	as alice tarena doctor >/tmp/doctor
	status=$?
	show /tmp/doctor
	cat /tmp/doctor
	[ "$status" -eq 0 ] && [ "$(grep -c '^ok' /tmp/doctor)" -ge 4 ] &&
		[ "$(grep -vc '^ok' /tmp/doctor)" -eq 2 ] &&
		grep -q '^note  CUDA: no NVIDIA driver' /tmp/doctor
}

photograph() {
	as alice tarena broadcast /root/tests/photo.jpg --engine device \
		--readers 2 --repeat 1 >/tmp/broadcast
	status=$?
	show /tmp/broadcast
	cat /tmp/broadcast
	[ "$status" -eq 0 ] && grep -q device /tmp/broadcast
}

# Under emulation the figures mean nothing.
measured() {
	as alice tarena bench --engine device --bytes 4194304 --readers 2 \
		--repeat 2 >/tmp/bench
	status=$?
	show /tmp/bench
	[ "$status" -eq 0 ] && grep '^engine: device' /tmp/bench &&
		[ "$(grep -c '^arena ' /tmp/bench)" -eq 2 ]
}

python_package() {
	as alice env TENSORARENA_PYTHON=/usr/lib/python3/dist-packages \
		TENSORARENA_TEST_ENGINE=device python3 -B \
		/root/tests/core_test.py
}

refused() {
	as bob tarena broadcast /etc/passwd --engine device >/tmp/refused 2>&1
	status=$?
	show /tmp/refused
	[ "$status" -ne 0 ] && grep -q 'this user may not open /dev/tensorarena' /tmp/refused
}

embedded() {
	as bob tarena broadcast /etc/passwd --readers 2 --json >/tmp/embedded
	status=$?
	cat /tmp/embedded
	[ "$status" -eq 0 ] && grep -q '"engine": *"embedded"' /tmp/embedded
}

advised() {
	as bob tarena doctor >/tmp/doctor
	cat /tmp/doctor
	grep -q '^note  /dev/tensorarena is there, but bob may not open it' \
		/tmp/doctor &&
		grep -q 'usermod --append --groups tensorarena bob' /tmp/doctor
}

watched() {
	as bob tarena metrics >/tmp/metrics
	cat /tmp/metrics
	grep -qx 'tensorarena_module_loaded 1' /tmp/metrics &&
		grep -q '^tensorarena_module_puts_total [1-9]' /tmp/metrics
}

limits() {
	documented 'echo 8 >/sys/module/tensorarena' &&
		grep -qx 8 /sys/module/tensorarena/parameters/max_arenas_per_uid &&
		modprobe -r tensorarena && modprobe tensorarena &&
		grep -qx 8 /sys/module/tensorarena/parameters/max_arenas_per_uid
}

# contain DEVICE: an unprivileged process in a container that is given it
contain() {
	podman run --rm --network none --user 1000:1000 --cap-drop all \
		--group-add "$(getent group tensorarena | cut -d: -f3)" \
		--device "$1" arena \
		tarena broadcast /bin/busybox --engine device --readers 2
}

in_a_container() {
	podman import --quiet image.tar arena && contain /dev/tensorarena
}

described_by_cdi() {
	documented 'mkdir -p /etc/cdi' && contain tensorarena.org/arena=node
}

read_from_udev() {
	udevadm info --query=property /sys/class/tensorarena/tensorarena
	[ "$(udevadm info --query=property --property=SUBSYSTEM --value \
		/sys/class/tensorarena/tensorarena)" = tensorarena ]
}

# An arena that alice uses all the time, as bob sees it in sysfs.
looked_into() {
	mkfifo /tmp/feed
	as alice /root/tests/busy_arena device 3 20 </tmp/feed >/tmp/busy 2>&1 &
	exec 8>/tmp/feed
	tries=0
	until grep -q '^busy$' /tmp/busy; do
		tries=$((tries + 1))
		[ "$tries" -le 600 ] || break
		sleep 0.1
	done
	as bob tarena stat --json >/tmp/stat
	as bob tarena metrics >/tmp/metrics
	exec 8>&-
	cat /tmp/busy /tmp/stat
	show /tmp/stat
	wait
	tr -d ' \n' </tmp/stat | grep -q '"seats":\[0,1,2\]' &&
		tr -d ' \n' </tmp/stat | grep -q '"puts":[1-9]' &&
		grep '^tensorarena_reader_pending' /tmp/metrics | grep -c 'pid="[1-9]' |
		grep -qx 3
}

check 'the module is loaded at boot' loaded_by_itself
check 'the node belongs to the group' for_the_group
check 'the doctor finds all well but for the GPU' healthy
check 'a user of the group sends a photograph through the module' photograph
check 'the module is measured beside sockets' measured
check 'and Python programs use it, too' python_package
check 'a user outside is refused, and told so' refused
check 'and gets the embedded engine' embedded
check 'and is told by the doctor what to do about it' advised
check 'anybody may read the metrics' watched
check 'anybody sees an arena with its readers' looked_into
check 'in a container the node and its group are all it takes' in_a_container
check 'the node as the CDI description of the manual has it' described_by_cdi
check 'udev knows the device' read_from_udev
check 'limits change as the manual says, and stay' limits
