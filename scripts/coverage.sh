#!/usr/bin/env bash
# Every statement of the built-in middleware, of the packages that it is written with, and of
# the checks that holdfastvet makes, must be run by a test of its own package. Fails with a
# list of the statements that are not, and with every file that should be measured but was not.
set -euo pipefail
cd "$(dirname "$0")/.."

# Every file of the root package, ./access, ./activity, ./codes, ./failure, ./secret, ./sharedstate, ./state,
# ./store, ./internal/strictjson, ./middleware/... and of the analysis of holdfastvet is measured, so that a file that
# moves or is divided is not forgotten, with the exception of files that are tested where they
# are used.
tested_elsewhere="middleware.go tool.go store/commit.go store/values.go"

module=$(go list -f "{{.Module.Path}}" .)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

analysis=$module/cmd/holdfastvet/internal/statecheck
go list . ./access ./activity ./codes ./failure ./secret ./sharedstate ./state ./store ./internal/strictjson ./middleware/... "$analysis" >"$dir/packages"
if [ "${1:-}" = -list ]; then
	cat "$dir/packages"
	exit
fi
go list -deps $(cat "$dir/packages") | grep "^$module/" | grep -vFx -e "$module/internal/schema" -f "$dir/packages" >"$dir/unmeasured" || true
if [ -s "$dir/unmeasured" ]; then
	echo "the middleware imports packages that are not measured:"
	cat "$dir/unmeasured"
	exit 1
fi

for f in $tested_elsewhere; do
	[ -f "$f" ] || { echo "scripts/coverage.sh makes an exception for $f, which is not there"; exit 1; }
	echo "$module/$f"
done >"$dir/exceptions"
# A file without functions has no statements.
go list -f '{{$dir := .Dir}}{{$path := .ImportPath}}{{range .GoFiles}}{{$dir}}/{{.}} {{$path}}/{{.}}{{"\n"}}{{end}}' $(cat "$dir/packages") |
	while read -r path name; do
		if grep -q '^func ' "$path"; then echo "$name"; fi
	done | grep -vFx -f "$dir/exceptions" >"$dir/files"

if [ "${1:-}" = -race ]; then
	# statecheck has no goroutines, and takes several times as long under the detector.
	go test -count=1 -race -covermode=atomic -coverprofile="$dir/profile" $(grep -vFx "$analysis" "$dir/packages")
	go test -count=1 -coverprofile="$dir/analysis" "$analysis"
	cat "$dir/analysis" >>"$dir/profile"
else
	# TestVet builds and vets all modules with holdfastvet, which measures nothing here.
	go test -count=1 -skip '^TestVet$' -coverprofile="$dir/profile" $(cat "$dir/packages")
fi
awk '
	NR == FNR { files[$1] = 0; next }
	{ split($1, at, ":") }
	at[1] in files { files[at[1]]++; n += $2; if ($3 == 0 && $2 > 0) { missed += $2; print "not covered: " $1 } }
	END {
		for (f in files) if (files[f] == 0) { absent++; print "not measured: " f }
		printf "%d of %d statements are covered\n", n - missed, n
		exit missed + absent > 0
	}' "$dir/files" "$dir/profile"
