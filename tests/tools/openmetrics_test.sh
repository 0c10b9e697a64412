#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena metrics: OpenMetrics by the book, by another's parser, printed and served.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

export TENSORARENA_SYSFS="$work/class"

# samples FILE: what the reference parser makes of it, as lines of JSON
samples() {
	/usr/bin/python3 - "$1" <<-'END'
	import json, sys
	from prometheus_client.openmetrics.parser import \
	    text_string_to_metric_families
	for family in text_string_to_metric_families(open(sys.argv[1]).read()):
	    for s in family.samples:
	        print(json.dumps({"family": family.name, "type": family.type,
	            "unit": family.unit, "name": s.name, "labels": s.labels,
	            "value": s.value}))
	END
}

# has JQ-EXPRESSION: whether it is true of some sample of $work/samples
has() {
	jq -es "any(.[]; $1)" <"$work/samples" >"$work/has" && return
	echo "no sample with $1"
	cat "$work/samples"
	return 1
}

not_loaded() {
	run metrics
	[ "$status" -eq 0 ] && samples "$work/stdout" >"$work/samples" &&
		has '.name == "tensorarena_module_loaded" and .value == 0' &&
		[ "$(wc -l <"$work/samples")" -eq 1 ]
}
check 'a machine without the module has metrics, too' not_loaded

# figures DIR NAME=VALUE...
figures() {
	dir=$1
	mkdir -p "$dir"
	shift
	for pair; do
		echo "${pair#*=}" >"$dir/${pair%%=*}"
	done
}

common='slots=8 free=5 writing=1 published=2 readers=3 allocated_bytes=4194304
	extents=2 oldest_ns=1500000000 puts=9007199254740993 put_bytes=7
	unaddressed=1 aborted=2 released=3 declined_no_slot=4
	declined_oversize=5 declined_no_memory=6 attached=7 detached=8
	evicted=9 reclaimed_dead_readers=10 reclaimed_bytes=11 writer_waits=12
	reader_waits=13 retracted=14'
# shellcheck disable=SC2086
figures "$work/class/arena7" $common slot_bytes=2000000 seats='0 2' \
	seat_readers='1 0' seat_pids='4711 0' seat_pending='1 2' \
	seat_oldest_ns='1500000000 2000000' slot_extents='1 1 0 0 0 0 0 0'
# shellcheck disable=SC2086
figures "$work/class/tensorarena" $common arenas=1 total_bytes=99

device() {
	run metrics
	samples "$work/stdout" >"$work/samples" || return
	of='.labels.arena == "arena7" and .labels.engine == "device"'
	has ".name == \"tensorarena_arena_slots\" and $of and
		.labels.state == \"writing\" and .value == 1" &&
		has ".name == \"tensorarena_arena_put_bytes_total\" and $of and
			.value == 7 and .unit == \"bytes\" and
			.type == \"counter\"" &&
		has ".name == \"tensorarena_arena_declined_total\" and $of and
			.labels.reason == \"no_memory\" and .value == 6" &&
		has ".name == \"tensorarena_arena_oldest_pending_seconds\" and
			$of and .value == 1.5" &&
		has ".name == \"tensorarena_reader_oldest_pending_seconds\" and
			$of and .labels.seat == \"2\" and
			.labels.reader == \"0\" and .value == 0.002" &&
		has ".name == \"tensorarena_reader_pending\" and
			.labels.pid == \"4711\" and .value == 1" &&
		has '.name == "tensorarena_module_readers_left_total" and
			.labels.how == "died" and .value == 10' &&
		has '.name == "tensorarena_module_loaded" and .value == 1' &&
		has '.name == "tensorarena_module_limited_bytes" and
			.value == 99' &&
		grep -q '^tensorarena_module_puts_total 9007199254740993$' \
			"$work/stdout"
}
check 'every figure of the module is a sample of its unit' device

every_figure() {
	for pair in $common slot_bytes=; do
		grep -q "\"${pair%%=*}\"" tools/metrics_format.c ||
			[ "${pair%%=*}" = slots ] || {
			echo "no sample shows ${pair%%=*}"
			return 1
		}
	done
}
check 'no figure is forgotten' every_figure

dashboard() {
	jq -r '.. | .expr? // empty' tools/grafana/tensorarena.json \
		>"$work/exprs"
	[ "$(wc -l <"$work/exprs")" -ge 8 ] || return
	grep -oE 'tensorarena_[a-z_]+' "$work/exprs" | sort -u >"$work/used"
	jq -r .name "$work/samples" | sort -u >"$work/there"
	cat "$work/used"
	! comm -23 "$work/used" "$work/there" | grep .
}
check "the dashboard asks for nothing that is not there" dashboard

dashboard_is_whole() {
	jq -e '.uid and .title and .schemaVersion >= 36 and
		([.panels[].id] | length == (unique | length)) and
		all(.panels[]; .gridPos.w + .gridPos.x <= 24 and
			(.type == "row" or (.targets | length > 0)))' \
		tools/grafana/tensorarena.json
}
check 'the dashboard is what Grafana takes' dashboard_is_whole

# get URL: $work/body and $work/headers; fails as curl would
get() {
	/usr/bin/python3 - "$@" "$work/body" "$work/headers" <<-'END'
	import sys, urllib.request
	url, method, body, headers = sys.argv[1:]
	request = urllib.request.Request(url, method=method)
	try:
	    answer = urllib.request.urlopen(request, timeout=20)
	except urllib.error.HTTPError as error:
	    answer = error
	open(body, "wb").write(answer.read())
	open(headers, "w").write(f"{answer.status}\n{answer.headers}")
	END
}

serving() {
	grep -q '^Serving' "$work/stdout"
}

url() {
	sed -n 's/^Serving \(.*\)$/\1/p' "$work/stdout"
}

scraped() {
	start metrics --listen 0 "$@"
	soon serving || return
	url
	case $(url) in
	http://127.0.0.1:*/metrics) ;;
	*) return 1 ;;
	esac
	get "$(url)" GET || return
	head -n 1 "$work/headers" | grep -qx 200 || return
	grep -qi '^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' \
		"$work/headers" || return
	samples "$work/body" >"$work/samples" || return
	get "$(url)" HEAD && [ ! -s "$work/body" ] || return
	get "$(url | sed 's/metrics/nothing/')" GET || return
	head -n 1 "$work/headers" | grep -qx 404 || return
	get "$(url)" DELETE
	head -n 1 "$work/headers" | grep -qx 405 || return
	kill -s TERM -- "-$pid"
	stop
	[ "$status" -eq 143 ]
}

served() {
	scraped && has '.name == "tensorarena_arena_puts_total"'
}
check 'a scrape gets the metrics, and only a scrape' served

served_anew() {
	start metrics --listen 127.0.0.1:0
	soon serving || return
	get "$(url)" GET
	rm -r "$work/class/arena7"
	get "$(url)" GET
	! grep arena7 "$work/body"
}
check 'every scrape looks anew' served_anew

busy 3
embedded() {
	scraped --handle "$handle" &&
		has '.name == "tensorarena_arena_puts_total" and .value > 0 and
			.labels.engine == "embedded"' &&
		has '.name == "tensorarena_reader_pending" and .value >= 1' &&
		! grep module_ "$work/samples"
}
check 'an embedded arena can be scraped by its handle' embedded
idle

six() {
	start metrics --listen '[::1]:0'
	soon serving || return
	case $(url) in
	'http://[::1]:'*) get "$(url)" GET ;;
	*) return 1 ;;
	esac
}
check 'an IPv6 address stands in brackets' six

refused() {
	for where in '' x 65536 -1 host:1 : 127.0.0.1: '[::1:1' 1:2:3; do
		run metrics --listen "$where"
		[ "$status" -eq 2 ] && grep -q -- '--listen takes' \
			"$work/stderr" || {
			echo "$where: $status"
			return 1
		}
	done
	run metrics --listen 192.0.2.1:1
	[ "$status" -eq 1 ] && grep -q 'cannot listen there' "$work/stderr"
}
check 'an address that is none is refused' refused

finish
