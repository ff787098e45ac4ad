#!/usr/bin/env bash
# Runs every fuzz target of the project for the given time (default 10s).
set -euo pipefail
cd "$(dirname "$0")/.."
time="${1:-10s}"
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	for target in $(grep -h -o '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/func //' | sort -u); do
		echo "fuzz $dir $target $time"
		# Sometimes go reports the end of the time as a failure; then try once more.
		log=$(mktemp)
		if ! go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$dir" 2>&1 | tee "$log"; then
			grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"
			go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$dir"
		fi
		rm -f "$log"
	done
done
