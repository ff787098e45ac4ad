// Package headers reads headers of requests that several packages know: who asks (the bearer
// token), and of which trace the request is a part.
package headers

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// Traceparent is the name of the header with the W3C trace context, by which a caller's traces,
// logs and services find what belongs together.
const Traceparent = "traceparent"

const (
	length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	hex    = "0123456789abcdef"
)

// ParseTraceparent returns the trace context that the values of a request's header say, in the
// form of version 00; empty if they say none. An invalid one is ignored, as the standard
// wants: nobody's request fails because of it.
func ParseTraceparent(values []string) string {
	if len(values) != 1 || len(values[0]) < length {
		return ""
	}
	whole, rest := values[0][:length], values[0][length:]
	parts := strings.Split(whole, "-")
	if len(parts) != 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return ""
	}
	for _, part := range parts {
		if strings.Trim(part, hex) != "" {
			return ""
		}
	}
	switch version := parts[0]; {
	case version == "ff", version == "00" && rest != "", rest != "" && rest[0] != '-':
		return ""
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return "00" + whole[2:]
}

// TraceID returns the id of the trace of a context that ParseTraceparent has returned.
func TraceID(parent string) string {
	if len(parent) != length {
		return ""
	}
	return parent[3:35]
}

// AddTraceparent adds the trace context of the run in the context to a request's header, if the run has
// one and the header has none.
func AddTraceparent(ctx context.Context, h http.Header) {
	if parent := holdfast.IterationFrom(ctx).Traceparent; parent != "" && h.Get(Traceparent) == "" {
		h.Set(Traceparent, parent)
	}
}

// LogTrace returns a logger whose lines have the id of the trace; log itself without a context.
func LogTrace(log *slog.Logger, parent string) *slog.Logger {
	if id := TraceID(parent); id != "" {
		return log.With("traceId", id)
	}
	return log
}
