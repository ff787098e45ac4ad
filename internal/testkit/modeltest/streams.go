package modeltest

// The ways in which networks, gateways and providers change a stream: other forms of the same
// events, characters that are torn, and streams that are cut off.

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

// forms: the same events as gateways and networks pass them on.
func (s *suite) forms(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`(?m)^event: .*\n`)
	for form, change := range map[string]func(string) string{
		"without names":           func(stream string) string { return names.ReplaceAllString(stream, "") },
		"CRLF":                    func(stream string) string { return strings.ReplaceAll(stream, "\n", "\r\n") },
		"without spaces":          func(stream string) string { return strings.ReplaceAll(stream, "data: ", "data:") },
		"without the last ending": func(stream string) string { return strings.TrimRight(stream, "\n") },
		"after comments": func(stream string) string {
			return ": hello\n\n" + strings.ReplaceAll(stream, "data: ", ": ping\ndata: ")
		},
		"with ids": func(stream string) string {
			return "retry: 3\n" + strings.ReplaceAll(stream, "data: ", "id: 7\ndata: ")
		},
	} {
		for name, a := range s.samples() {
			w := says("")
			w.body = func(context.Context) io.Reader {
				return iotest.OneByteReader(strings.NewReader(change(strings.Join(s.Stream(a), ""))))
			}
			h := ask(t.Context(), t, s.model(t, "m1", w), question())
			if got, want := got(h), s.want(a); got != want || h.err != nil {
				t.Errorf("%s, %s:\n%s, %v\nwant\n%s", name, form, got, h.err, want)
			}
		}
	}
}

// torn: pieces may end in the middle of a character, between its escapes or its bytes.
func (s *suite) torn(t *testing.T) {
	t.Parallel()
	a := Answer{
		Text:   []string{"aFIRST", "SECONDb"},
		Calls:  []Call{{ID: "c1", Name: "look", Arguments: []string{`{"x":"FIRST`, `SECOND"}`}}},
		Finish: holdfast.FinishToolCalls,
	}
	if s.Thinks {
		a.Reasoning = []string{"FIRST", "SECOND"}
	}
	if s.InOrder { // a call is never torn
		a.Calls, a.Finish = nil, holdfast.FinishStop
	}
	want := s.want(a)
	for name, halves := range map[string][2]string{"escapes": {`\ud83d`, `\uDE00`}, "bytes": {"\xf0\x9f", "\x98\x80"}} {
		h := s.reply(t, strings.NewReplacer("FIRST", halves[0], "SECOND", halves[1]).
			Replace(strings.Join(s.Stream(a), "")))
		want := strings.ReplaceAll(want, "FIRSTSECOND", "\U0001f600")
		if got := got(h); got != want || h.err != nil {
			t.Errorf("%s:\n%s, %v\nwant\n%s", name, got, h.err, want)
		}
	}
}

// PartVariable says at which bytes answers are cut: 3/16 is every 16th, from the 3rd; 0/1 is
// each. Without it, [part] is taken. The ends of events are always places.
const PartVariable, part = "MODEL_SUITE_PART", "0/16"

// places tells which of a stream's bytes it is to be cut at.
func places(t *testing.T) func(at int) bool {
	t.Helper()
	value := cmp.Or(os.Getenv(PartVariable), part)
	first, parts, ok := strings.Cut(value, "/")
	k, err := strconv.Atoi(first)
	n, err2 := strconv.Atoi(parts)
	if !ok || err != nil || err2 != nil || k < 0 || k >= n {
		t.Fatalf("%s=%s is no part, such as %s", PartVariable, value, part)
	}
	t.Logf("%s=%s", PartVariable, value)
	return func(at int) bool { return at%n == k }
}

// cut: an answer that ends too early is a truncation wherever it ends, and what was said
// until then is the beginning of the answer.
func (s *suite) cut(t *testing.T) {
	t.Parallel()
	chosen := places(t)
	for name, a := range s.samples() {
		events := s.Stream(a)
		whole := strings.Join(events, "")
		complete := len(strings.TrimRight(strings.Join(events[:len(events)-s.Trailing], ""), "\n"))
		ends, end := map[int]bool{}, 0
		for _, event := range events {
			end += len(event)
			ends[end] = true
		}
		for at := range whole {
			if !chosen(at) && !ends[at] {
				continue
			}
			for _, cause := range []error{io.EOF, io.ErrUnexpectedEOF} {
				s.cutAt(t, name, a, whole[:at], cause, at >= complete)
			}
		}
	}
}

// cutAt cuts an answer after this beginning of it, which may be complete.
func (s *suite) cutAt(t *testing.T, name string, a Answer, beginning string, cause error, complete bool) {
	t.Helper()
	w := says("")
	w.body = func(context.Context) io.Reader {
		return io.MultiReader(strings.NewReader(beginning), iotest.ErrReader(cause))
	}
	h := ask(t.Context(), t, s.model(t, "m1", w), question())
	e := h.failure()
	switch {
	case !strings.HasPrefix(strings.Join(a.Text, ""), h.text) ||
		!strings.HasPrefix(strings.Join(a.Reasoning, ""), h.reasoning) || len(h.calls) > len(a.Calls):
		t.Fatalf("%s, cut at %d with %v: %s", name, len(beginning), cause, h)
	case complete && e == nil:
	case e == nil || e.Kind != failure.Cut || !e.Retryable || !errors.Is(e, holdfast.ErrTruncated):
		t.Fatalf("%s, cut at %d with %v: %s, %v; the stream so far:\n%s", name, len(beginning), cause, h, h.err,
			beginning)
	}
}
