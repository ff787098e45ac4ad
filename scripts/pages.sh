#!/usr/bin/env bash
# Runs the example pages in a real browser: those that are given, or all of examples/*/test/browser.mjs.
#
#   scripts/pages.sh path/to/holdfast [copilotkit …]
#
# STORES says on which stores ("file redis" by default); a redis-server is started for it.
# TEST is another script than a page's own test, as its folder sees it.
# The pages of one store run at the same time, because they mostly wait. With
# HOLDFAST_TEST_PART=N, as in CI, each page is tried on one store: every other N on the
# other. Without Node,
# Chromium or a page's packages it says so and goes on, unless HOLDFAST_REQUIRE_ALL=1.
set -euo pipefail
binary=$(realpath "$1")
shift
cd "$(dirname "$0")/.."

missing() {
	echo "$1 skipped: $2 (scripts/install-test-deps.sh installs it)"
	[ "${HOLDFAST_REQUIRE_ALL:-}" != 1 ]
}

pages=("$@")
if [ ${#pages[@]} -eq 0 ]; then
	for test in examples/*/test/browser.mjs; do
		pages+=("$(basename "$(dirname "$(dirname "$test")")")")
	done
fi
# The folder with the packages of a page. The dojo has those of another one.
packages() { if [ -f "examples/$1/package-lock.json" ]; then echo "$1"; else echo copilotkit; fi; }
ready=()
for page in "${pages[@]}"; do
	if [ -d "examples/$(packages "$page")/node_modules" ]; then
		npm --prefix "examples/$page" run --silent build
		ready+=("$page")
	else
		missing "examples/$page" "no node_modules"
	fi
done

work=$(mktemp -d)
redis=""
finish() {
	if [ -n "$redis" ]; then kill "$redis" && wait "$redis" || true; fi
	rm -rf "$work"
}
trap finish EXIT

# Starts a redis-server on a free port, and sets url to its first database but for the number.
start_redis() {
	local port
	port=$(node -e 'const s = require("net").createServer().listen(0, "localhost", () => { console.log(s.address().port); s.close() })')
	redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no --databases 64 --dir "$work" >"$work/redis.log" &
	redis=$!
	until redis-cli -p "$port" ping >/dev/null 2>&1; do
		kill -0 "$redis" || { cat "$work/redis.log"; return 1; }
		sleep 0.05
	done
	url="redis://127.0.0.1:$port"
}

read -ra stores <<<"${STORES:-file redis}"
# Whether this is the store for a page, by their numbers.
chosen() { [ -z "${HOLDFAST_TEST_PART:-}" ] || (((HOLDFAST_TEST_PART + $1 - $2) % ${#stores[@]} == 0)); }

failed=0
for s in "${!stores[@]}"; do
	store=${stores[$s]}
	if [ "$store" = redis ] && ! command -v redis-server >/dev/null; then
		missing "the store in Redis" "no redis-server"
		continue
	fi
	[ "$store" != redis ] || start_redis
	running=()
	names=()
	for i in "${!ready[@]}"; do
		page=${ready[$i]}
		if ! chosen "$i" "$s"; then
			echo "$page is not tried on $store, because of HOLDFAST_TEST_PART=$HOLDFAST_TEST_PART"
			continue
		fi
		where=()
		[ "$store" != redis ] || where=("$url/$i")
		(cd "examples/$page" && node "${TEST:-test/browser.mjs}" "$binary" "${where[@]}") >"$work/$page-$store" 2>&1 &
		running+=($!)
		names+=("$page")
	done
	for i in "${!running[@]}"; do
		wait "${running[$i]}" || failed=1
		sed "s/^/${names[$i]} ($store): /" "$work/${names[$i]}-$store"
	done
done
exit $failed
