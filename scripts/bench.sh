#!/usr/bin/env bash
# The benchmarks behind docs/benchmarks.md, with their bars. Takes about five
# minutes; needs Linux for the last two.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== encode and decode (bars: append <= 0.35 x encoding-json, 0 allocs; holdfast <= 1.3 x lean)"
go test -run='^$' -bench='EncodeHot|DecodeInput200' -count=5 ./internal/agui | tee /tmp/holdfast-bench.$$ | grep ^Benchmark
awk '
	/EncodeHot\/append/ { a += $3 } /EncodeHot\/encoding-json/ { j += $3 }
	/DecodeInput200\/holdfast/ { h += $3 } /DecodeInput200\/lean/ { l += $3 }
	END {
		printf "encode: %.2f x encoding/json (limit 0.35)\ndecode: %.2f x a lean decode (limit 1.3)\n", a/j, h/l
		exit !(a/j <= 0.35 && h/l <= 1.3)
	}' /tmp/holdfast-bench.$$
rm -f /tmp/holdfast-bench.$$

echo "== embedded store beside a bare bbolt loop with the same puts"
go test -run='^$' -bench=. -benchtime=2s ./internal/boltstore | grep ^Benchmark

echo "== bytes written per iteration (bar: <= 1.2 x)"
go run ./bench -growth

echo "== load: CPU per delta beside the floor (bar: <= 6 x)"
go run ./bench -runs 100 -rate 50 -seconds 10 -rounds 3 -limit 6
