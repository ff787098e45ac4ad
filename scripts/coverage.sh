#!/usr/bin/env bash
# Every statement of the built-in middleware, and of what the root package does for its
# states, is run by a test of its own package. Fails with the statements that are not,
# and with a file that should be measured but is not there: one that has moved must not
# be forgotten.
set -euo pipefail
cd "$(dirname "$0")/.."

# The files of the root package that are measured. Of ./state, ./store and ./middleware/... every file is.
root="runcontext.go"
# Packages below ./middleware that only tests import.
tests_only="middleware/internal/hooktest"

module=$(go list -m)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

go list ./middleware/... | grep -vFx "$module/$tests_only" >"$dir/packages"
go list -deps $(cat "$dir/packages") | grep "^$module/" | grep -vFx -e "$module/internal/schema" -f "$dir/packages" >"$dir/elsewhere" || true
if [ -s "$dir/elsewhere" ]; then
	echo "the middleware imports packages that are not measured:"
	cat "$dir/elsewhere"
	exit 1
fi

for f in $root; do echo "$module/$f"; done >"$dir/files"
# A file without functions has no statements.
go list -f '{{$dir := .Dir}}{{$path := .ImportPath}}{{range .GoFiles}}{{$dir}}/{{.}} {{$path}}/{{.}}{{"\n"}}{{end}}' $(cat "$dir/packages") |
	while read -r path name; do
		if grep -q '^func ' "$path"; then echo "$name"; fi
	done >>"$dir/files"

go test -count=1 -coverprofile="$dir/profile" . $(cat "$dir/packages")
awk '
	NR == FNR { files[$1] = 0; next }
	{ split($1, at, ":") }
	at[1] in files { files[at[1]]++; n += $2; if ($3 == 0 && $2 > 0) { missed += $2; print "not covered: " $1 } }
	END {
		for (f in files) if (files[f] == 0) { absent++; print "nothing was measured of " f ": has it moved? Then tell scripts/coverage.sh." }
		printf "%d of %d statements are covered\n", n - missed, n
		exit missed + absent > 0
	}' "$dir/files" "$dir/profile"
