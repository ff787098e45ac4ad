#!/usr/bin/env bash
# Makes docs/images/page.png, the picture in the README: builds the server, starts it with
# the demo model, and lets a headless Chromium have a short conversation.
#
#   scripts/screenshot.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/.."

CGO_ENABLED=0 go build -trimpath -o bin/holdfast ./cmd/server
node scripts/screenshot.mjs bin/holdfast "${1:-docs/images/page.png}"
