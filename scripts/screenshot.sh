#!/usr/bin/env bash
# Makes the pictures of Studio in docs/images: builds the server, starts it with the demo
# model, and lets a headless Chromium use it.
#
#   scripts/screenshot.sh [DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."

CGO_ENABLED=0 go build -trimpath -o bin/holdfast ./cmd/holdfast
node scripts/screenshot.mjs bin/holdfast "${1:-docs/images}"
