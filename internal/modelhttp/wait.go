package modelhttp

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds how long a provider can make a run wait.
const maxRetryAfter = 2 * time.Minute

// bounded returns how long to wait, at most maxRetryAfter.
func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxRetryAfter) }

// retryAfter reads how long to wait: retry-after-ms, or Retry-After in seconds
// or as a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	var d float64
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = ms * float64(time.Millisecond)
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		d = s * float64(time.Second)
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = float64(at.Sub(now))
	}
	if !(d > 0) { // which includes what is not a number
		return 0
	}
	return time.Duration(min(d, float64(maxRetryAfter)))
}

// resetAfter reads when a limit that is used up is full again: OpenAI's x-ratelimit-reset-…
// say it as "6m0s", Anthropic's anthropic-ratelimit-…-reset as a time.
func resetAfter(h http.Header, now time.Time) time.Duration {
	var longest time.Duration
	for name := range h {
		lower := strings.ToLower(name)
		var left, value string
		switch {
		case strings.HasPrefix(lower, "x-ratelimit-reset-"):
			left, value = "x-ratelimit-remaining-"+strings.TrimPrefix(lower, "x-ratelimit-reset-"), h.Get(name)
		case strings.HasPrefix(lower, "anthropic-ratelimit-") && strings.HasSuffix(lower, "-reset"):
			left, value = strings.TrimSuffix(lower, "-reset")+"-remaining", h.Get(name)
		default:
			continue
		}
		if remaining := h.Get(left); remaining != "" && remaining != "0" {
			continue // another limit is the one in the way
		}
		d, err := time.ParseDuration(value)
		if at, notTime := time.Parse(time.RFC3339, value); err != nil && notTime == nil {
			d = at.Sub(now)
		}
		longest = max(longest, d)
	}
	return bounded(longest)
}

var tryAgain = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) ((?:[0-9]+(?:\.[0-9]+)?(?:ms|h|m|s))+)`)

// waitInWords reads how long to wait from a text like "try again in 7m12s".
func waitInWords(text string) time.Duration {
	found := tryAgain.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	d, err := time.ParseDuration(strings.ToLower(found[1]))
	if err != nil {
		return 0
	}
	return bounded(d)
}
