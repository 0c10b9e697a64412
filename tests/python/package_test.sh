#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The source distribution is complete, the wheel is made from it, and what is in
# the wheel works.

. "$(dirname "$0")/../tools/tap.sh"

python="/usr/bin/python3 -B"

built() {
	python/make-dist "$work/dist"
}

wheel_is_for_every_python() {
	version=$(sed -n 's/^VERSION := //p' Makefile)
	test -f "$work/dist/tensorarena-$version.tar.gz" &&
		test -f "$work/dist/tensorarena-$version-cp311-abi3-linux_$(uname -m).whl"
}

wheel_has_all() {
	$python -m zipfile -e "$work"/dist/*.whl "$work/site" &&
		(cd python/tensorarena &&
			ls -- *.py */*.py *.pyi py.typed) >"$work/want" &&
		(cd "$work/site/tensorarena" &&
			find . -type f ! -name '*.so' | sed 's/..//' | sort) \
			>"$work/have" &&
		diff "$work/want" "$work/have" &&
		test -f "$work"/site/tensorarena-*.dist-info/MIT.txt
}

wheel_works() {
	TENSORARENA_PYTHON=$work/site $python tests/python/core_test.py
}

wheel_is_a_plugin_of_vllm() {
	TENSORARENA_VLLM='' $python - "$work/site" <<-'END'
	import sys
	from importlib.metadata import entry_points
	sys.path.insert(0, sys.argv[1])
	plugin, = entry_points(group="vllm.general_plugins")
	assert plugin.name == "tensorarena"
	plugin.load()()
	assert sys.modules["tensorarena"].__file__.startswith(sys.argv[1])
	END
}

files() {
	find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | sort
}

tree_is_as_before() {
	files >"$work/after"
	diff "$work/before" "$work/after"
}

files >"$work/before"
check 'source distribution and wheel are built without a network' built
check 'the wheel is for every CPython from 3.11 on' wheel_is_for_every_python
check 'the wheel has every module, the stubs and the licence' wheel_has_all
check 'the extension of the wheel passes its tests' wheel_works
check 'vLLM finds its plugin in the wheel' wheel_is_a_plugin_of_vllm
check 'nothing is left behind in the tree' tree_is_as_before
finish
