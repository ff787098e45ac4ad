#!/usr/bin/env bash
# Installs what the tests need beyond Go: Node.js, the official AG-UI client from the npm
# registry, redis-server and Chromium. Skips what is already installed.
set -euo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }

packages=()
have node && have npm || packages+=(nodejs npm)
have redis-server || packages+=(redis-server)
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

if ! cmp -s test/oracle/package-lock.json test/oracle/node_modules/.installed-lock; then
	npm --prefix test/oracle ci --no-audit --no-fund
	cp test/oracle/package-lock.json test/oracle/node_modules/.installed-lock
fi
