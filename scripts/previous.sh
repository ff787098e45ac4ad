#!/usr/bin/env bash
# Builds the server of the build before, from a pinned commit of this repository's history, and
# prints its path: scripts/previous.sh. Servers of that build and of this one share a store in
# tests (make mixed). It is built once.
set -euo pipefail
cd "$(dirname "$0")/.."

# The last commit that reads and writes data up to format 8. It is moved on with a release.
commit=1015af32e410296e59f0ee5dd232ede809115efa
program=$PWD/bin/previous/$commit/holdfast

if [ ! -x "$program" ]; then
	# A shallow clone has only the newest commits.
	if ! git cat-file -e "$commit^{commit}" 2>/dev/null && ! git fetch --quiet --depth=1 origin "$commit" 2>/dev/null; then
		echo "the build before cannot be made: this clone has no commit $commit, and its origin does not give it; use a clone with the whole history (git fetch --unshallow)" >&2
		exit 1
	fi
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	git archive "$commit" | tar -x -C "$source"
	mkdir -p "$(dirname "$program")"
	# Under another name first, so that nobody finds half a program.
	(cd "$source" && go build -trimpath -ldflags='-s -w' -o "$program.$$" ./cmd/server)
	mv "$program.$$" "$program"
fi
echo "$program"
