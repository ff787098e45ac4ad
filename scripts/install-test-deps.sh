#!/usr/bin/env bash
# Installs what the tests need beyond Go: Node.js and the official AG-UI client
# from the npm registry. Does nothing that has been done before.
set -euo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }

if ! have node || ! have npm; then
	if ! have apt-get; then
		echo "install Node.js 20 or newer with npm, then run this again" >&2
		exit 1
	fi
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	$sudo apt-get install -y -qq nodejs npm
fi

if ! cmp -s test/oracle/package-lock.json test/oracle/node_modules/.installed-lock; then
	npm --prefix test/oracle ci --no-audit --no-fund
	cp test/oracle/package-lock.json test/oracle/node_modules/.installed-lock
fi
