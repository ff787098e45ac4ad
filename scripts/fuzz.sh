#!/usr/bin/env bash
# Runs every fuzz target of the project for the given time (default 10s). What is found
# goes where go test -fuzz puts it: new inputs into the build cache, failing ones into the
# testdata of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
time="${1:-10s}"
cache="$(go env GOCACHE)/fuzz"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fuzz PACKAGE TARGET runs one target, in the folder of its package.
fuzz() { "$work/program" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$time" -test.fuzzcachedir="$cache/$1"; }

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	cd "$root/$dir"
	# One program for all targets of the package. With -fuzz it is instrumented.
	go test -c -fuzz=. -o "$work/program"
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
