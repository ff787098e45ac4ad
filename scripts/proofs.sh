#!/usr/bin/env bash
# Runs the campaigns of scripts/proofs.txt whole, or those that are named, one after the
# other, and writes what came of each to its row in docs/proofs.md.
#
#   scripts/proofs.sh [NAME…]
#
# What has passed is not run again until something else than that page has changed, so after
# an interruption the same command goes on. A campaign that fails does not keep the others
# from running; at the end, the failed ones are named.
set -euo pipefail
cd "$(dirname "$0")/.."
list=scripts/proofs.txt page=docs/proofs.md
trap 'echo "interrupted: the same command goes on from here" >&2; exit 130' INT TERM

# Nothing may make a campaign smaller: no variable of the Makefile, and none of CI.
# shellcheck disable=SC2046
unset MAKEFLAGS MFLAGS HOLDFAST_TEST_PART HOLDFAST_DEATHS $(sed -nE 's/^([A-Z_]+) \?=.*/\1/p' Makefile)
export HOLDFAST_REQUIRE_ALL=1 GOFLAGS="${GOFLAGS:-} -count=1"
# Some open thousands of connections.
ulimit -n "$(ulimit -Hn)"

campaigns=$(sed -nE 's/^([a-z][a-z-]*).*/\1/p' $list)
read -ra chosen <<<"$*"
[ ${#chosen[@]} -gt 0 ] || read -ra chosen <<<"${campaigns//$'\n'/ }"
for name in "${chosen[@]}"; do
	grep -qFx "$name" <<<"$campaigns" || { echo "$name is no campaign of $list" >&2; exit 2; }
done

# The commit that has what is tried, and how it was changed since.
commit=$(git log -1 --format=%h -- . ":!$page")
shown=$commit kept=bin/proofs/$commit
if [ -n "$(git status --porcelain -- . ":!$page")" ]; then
	shown="$commit with changes"
	kept+=-$({ git status --porcelain -- . ":!$page" && git diff HEAD -- . ":!$page"; } | git hash-object --stdin | cut -c1-12)
fi
mkdir -p "$kept"

# summary NAME LOG is what a campaign says of itself, in one line.
summary() {
	local pattern lines
	pattern=$(sed -nE "s/^$1 +([^ ].*)/\1/p" $list)
	lines=$(sed -E 's/^ +//; s/^[a-z_]+\.go:[0-9]+: //' "$2")
	{ if [ -n "$pattern" ]; then grep -E -- "$pattern" <<<"$lines" || true; else grep -E '^\|.*[0-9]' <<<"$lines" || true; fi; } |
		sed -E 's/^\| *//; s/ *\|$//; s/ *\| */, /g' | paste -sd';' | sed 's/;/; /g; s/|/\\|/g' | cut -c1-240 | grep . ||
		echo "$(grep -c '^ok' "$2") packages pass"
}

# failure LOG is the first line that says what went wrong.
failure() {
	# The commands that make prints name what they look for, too.
	echo "**failed**: $(grep -vE 'go test|bash -' "$1" | grep -E 'FAIL|MISSED|missed|_test\.go:[0-9]+:|rror' | head -n1 | sed -E 's/^ +//; s/\|/\\|/g' | cut -c1-200)"
}

spent() {
	if (($1 < 120)); then echo "$1 s"; elif (($1 < 7200)); then echo "$(($1 / 60)) min"; else echo "$(($1 / 3600)) h $(($1 / 60 % 60)) min"; fi
}

# record NAME ROW puts the row where the list has its name, and drops rows of no campaign.
record() {
	awk -v name="$1" -v row="$2" -v order="${campaigns//$'\n'/ }" '
		function named(line) { sub(/^\| `make /, "", line); sub(/`.*/, "", line); return line }
		NR == FNR { if (/^\| `make /) rows[named($0)] = $0; next }
		/^\| `make / { next }
		{ print }
		/^\| ?---/ { rows[name] = row; n = split(order, names, " "); for (i = 1; i <= n; i++) if (names[i] in rows) print rows[names[i]] }
	' $page $page >"$kept/page"
	cp "$kept/page" $page
}

failed=()
for name in "${chosen[@]}"; do
	if [ -f "$kept/$name.passed" ]; then
		echo "== make $name has passed: $(cat "$kept/$name.passed")"
		continue
	fi
	echo "== make $name"
	begun=$SECONDS log=$kept/$name.log
	if ${MAKE:-make} --no-print-directory "$name" 2>&1 | tee "$log"; then
		result=$(summary "$name" "$log")
		echo "$result" >"$kept/$name.passed"
	else
		result=$(failure "$log")
		failed+=("$name")
	fi
	took=$(spent $((SECONDS - begun)))
	record "$name" "| \`make $name\` | $(date +%F) | $shown | $took | $result |"
	echo "== make $name took $took: $result"
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "failed: ${failed[*]}" >&2
	exit 1
fi
