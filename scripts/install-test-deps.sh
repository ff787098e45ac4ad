#!/usr/bin/env bash
# Installs what the tests need beyond Go: Node.js, redis-server, Chromium, spin and a C compiler,
# in CI nginx and HAProxy, and from the npm registry the official AG-UI client, the official MCP
# servers, what the page is built of and tested with, what clients/js is built and tested with, and
# the packages of the example pages. Skips what is already installed. Packages' install scripts are
# not run.
set -euo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }

packages=()
have node && have npm || packages+=(nodejs npm)
have redis-server || packages+=(redis-server)
have spin || packages+=(spin)
have gcc || packages+=(gcc libc6-dev)
if [ "${CI:-}" = true ]; then # elsewhere, these would begin to serve port 80
	[ -x /usr/sbin/nginx ] || packages+=(nginx-light)
	[ -x /usr/sbin/haproxy ] || packages+=(haproxy)
fi
have chromium || have chromium-browser || have google-chrome || packages+=(chromium)
if [ ${#packages[@]} -gt 0 ]; then
	if ! have apt-get; then
		echo "install these, then run this again: ${packages[*]}" >&2
		exit 1
	fi
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}"
fi

# All at once: they mostly wait for the registry.
running=()
for dir in test/oracle test/mcp web clients/js $(dirname examples/*/package-lock.json); do
	if ! cmp -s "$dir/package-lock.json" "$dir/node_modules/.installed-lock"; then
		(npm --prefix "$dir" ci --ignore-scripts --no-audit --no-fund && cp "$dir/package-lock.json" "$dir/node_modules/.installed-lock") &
		running+=($!)
	fi
done
for pid in "${running[@]}"; do wait "$pid"; done
