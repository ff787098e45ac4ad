#!/usr/bin/env bash
# Every statement of the middleware states, their migrations and the built-in middleware
# must be run by a test of its own package. Fails with a list of those that are not.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

go test -count=1 -coverprofile="$dir/root" . >/dev/null
go test -count=1 -coverprofile="$dir/middleware" ./middleware >/dev/null
grep -hE '/(statekey|states|stateschema|runcontext|ledger|middleware/[a-z_]+)\.go:' "$dir/root" "$dir/middleware" |
	awk '
		{ split($1, at, ":"); n += $2; if ($3 == 0 && $2 > 0) { missed += $2; print "not covered: " $1 } }
		END {
			if (n == 0) { print "no statement was found: has a file been renamed?"; exit 1 }
			printf "%d of %d statements are covered\n", n - missed, n
			exit missed > 0
		}'
