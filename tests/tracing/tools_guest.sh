#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In the virtual machine: the tools that operators use find the module's
# tracepoints and make sense of them.

work=/tmp/tools
mkdir -p "$work"
points=0

check() {
	name=$1
	shift
	points=$((points + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $points - $name"
	else
		sed 's/^/# /' "$work/said"
		echo "not ok $points - $name"
	fi
}

saw() {
	for event; do
		grep -q "tensorarena:ta_$event(" "$work/perf" || {
			echo "no $event"
			tail -n 20 "$work/perf"
			return 1
		}
	done
}

perf_trace() {
	perf trace -a -o "$work/perf" -e 'tensorarena:*' /bin/workload &&
		saw "$@"
}

causes_have_names() {
	perf record -q -a -o "$work/data" -e tensorarena:ta_death \
		/bin/workload && perf script -i "$work/data" >"$work/script" ||
		return
	cat "$work/script"
	grep -q 'ta_death: arena=.* cause=exited freed=0' "$work/script"
}

bpftrace_lists() {
	bpftrace -l 'tracepoint:tensorarena:*' >"$work/list" || return
	sed -nE 's/^(TRACE_EVENT\(|DEFINE_EVENT\(.*, )(ta_[a-z_]+),$/tracepoint:tensorarena:\2/p' \
		/trace.h | sort >"$work/defined"
	[ -s "$work/defined" ] && sort "$work/list" | diff "$work/defined" -
}

histogram() {
	bpftrace /publish-to-release.bt -c /bin/workload >"$work/histogram" ||
		return
	cat "$work/histogram"
	grep -q '^@held_us\[[0-9]*\]:' "$work/histogram" &&
		grep -q '|@' "$work/histogram" &&
		grep -q '^@slowest_us\[[0-9]*, [0-9]*\]: [0-9]*$' \
			"$work/histogram"
}

echo 1..4
check 'perf trace shows what happens' perf_trace create attach acquire \
	publish next borrow release detach death evict destroy decline abort
check 'perf has names for causes of death' causes_have_names
check 'bpftrace lists every tracepoint' bpftrace_lists
check 'the example makes a histogram from publication to release' histogram
