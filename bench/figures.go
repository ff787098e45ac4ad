package main

import (
	"fmt"
	"slices"
	"time"
)

// How figures are made of many: percentiles of times, medians of turns.

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentile returns the p-th percentile; it sorts d.
func percentile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(float64(len(d))*p/100))]
}

func median(d []float64) float64 {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

// spread is the median, the 99th percentile and the longest, as the tables show them.
func spread(d []time.Duration) string {
	return fmt.Sprintf("%.1f / %.1f / %.1f ms", ms(percentile(d, 50)), ms(percentile(d, 99)), ms(slices.Max(d)))
}

// verdict is how a table says whether a bar was held.
func verdict(held bool) string {
	if held {
		return "ok"
	}
	return "MISSED"
}
