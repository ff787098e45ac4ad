package http

import (
	"mime"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// The two media types in which a POST can be answered.
const (
	typeSSE  = "text/event-stream"
	typeJSON = exchange.TypeJSON
)

// wantsJSON reports whether a POST waits for the end of its run and answers with one
// JSON object. It does if the Accept header prefers JSON to Server-Sent Events. If
// both are equally welcome, or there is no preference at all, it streams, because that
// is what AG-UI clients expect.
func wantsJSON(accept []string) (bool, error) {
	ranges := parseAccept(accept)
	if len(ranges) == 0 {
		return false, nil
	}
	sse, json := quality(ranges, typeSSE), quality(ranges, typeJSON)
	if sse <= 0 && json <= 0 {
		return false, holdfast.Errorf(codes.NotAcceptable,
			"The Accept header allows none of the forms in which a run can be answered.").
			WithHint("Accept %s to watch the run, or %s to wait for its end and get one object.", typeSSE, typeJSON)
	}
	return json > sse, nil
}

// mediaRange is an element of an Accept header.
type mediaRange struct {
	kind string // "type/subtype", "type/*" or "*/*", in lower case
	q    float64
}

// parseAccept reads the elements of all Accept headers (RFC 9110, 12.5.1). It skips
// what it cannot read, so that a malformed header expresses no preference. Parameters
// other than q are ignored, because these media types have none.
func parseAccept(headers []string) []mediaRange {
	var out []mediaRange
	for _, header := range headers {
		for _, element := range splitQuoted(header) {
			kind, params, err := mime.ParseMediaType(element)
			if err != nil || !strings.Contains(kind, "/") {
				continue
			}
			q := 1.0
			if s, there := params["q"]; there {
				if q, err = strconv.ParseFloat(s, 64); err != nil || !(q >= 0 && q <= 1) {
					continue
				}
			}
			out = append(out, mediaRange{kind, q})
		}
	}
	return out
}

// splitQuoted splits a header at its commas, except those in quoted strings.
func splitQuoted(s string) []string {
	var out []string
	start, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// quality returns how welcome a media type is: the q of the most specific range that
// includes it, 0 if there is none.
func quality(ranges []mediaRange, kind string) float64 {
	group, _, _ := strings.Cut(kind, "/")
	best, q := 0, 0.0
	for _, r := range ranges {
		specific := 0
		switch r.kind {
		case kind:
			specific = 3
		case group + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		// If a range occurs twice, the higher q counts.
		if specific > best || (specific == best && specific > 0 && r.q > q) {
			best, q = specific, r.q
		}
	}
	return q
}
