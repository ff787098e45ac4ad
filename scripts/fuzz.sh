#!/usr/bin/env bash
# fuzz.sh [TIME [all|project [PART/PARTS]]] runs every fuzz target for the time (default
# 10s), or those of a part of the packages: 0/3 is the first third. What is found goes
# where go test -fuzz puts it: new inputs into the build cache, failing ones into the
# testdata of the package.
#
# Fuzzing is guided by the code that an input reaches: of all packages, or of the project's
# alone. Then nothing has to be compiled once more but the project, which pays where the
# time is short.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
time="${1:-10s}"
case "${2:-all}" in
all) instrument="-fuzz=." ;;
project) instrument="-gcflags=$(go list -f "{{.Module.Path}}" .)/...=-d=libfuzzer" ;; # what -fuzz adds for all
*) echo "all or project, not $2" >&2 && exit 2 ;;
esac
cache="$(go env GOCACHE)/fuzz"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fuzz PACKAGE TARGET runs one target, in the folder of its package. Without the bound,
# making the first new input shorter takes the whole time where code has timers or locks.
fuzz() { "$work/${1##*/}.test" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$time" -test.fuzzminimizetime=100x -test.fuzzcachedir="$cache/$1"; }

part="${3:-0/1}"
dirs=$(grep -rl --include='*_test.go' --exclude-dir=node_modules '^func Fuzz' . | xargs -n1 dirname | sort -u |
	awk -v part="${part%/*}" -v parts="${part#*/}" 'NR % parts == part')
# One program for all targets of a package, and all programs at once where Go allows that.
programs() { go test -c -ldflags='-s -w' "$instrument" -o "$work/" "$@"; }
# shellcheck disable=SC2086
if [ "$instrument" = -fuzz=. ]; then for dir in $dirs; do programs "$dir"; done; else programs $dirs; fi
for dir in $dirs; do
	cd "$root/$dir"
	package=$(go list)
	for target in $(grep -h -o '^func Fuzz[A-Za-z0-9_]*' ./*_test.go | sed 's/func //' | sort -u); do
		echo "fuzz $dir $target $time"
		if ! fuzz "$package" "$target" 2>&1 | tee "$work/log"; then
			# Sometimes the end of the time is reported as a failure; then try once more.
			if grep -q 'Failing input' "$work/log" || ! grep -q 'context deadline exceeded' "$work/log"; then
				exit 1
			fi
			fuzz "$package" "$target"
		fi
	done
done
