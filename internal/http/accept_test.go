package http

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

func TestAccept(t *testing.T) {
	const none = "none"
	for _, c := range []struct{ accept, want string }{
		{"", typeSSE},
		{"*/*", typeSSE},
		{"text/event-stream", typeSSE},
		{"text/*", typeSSE},
		{"application/json", typeJSON},
		{"Application/JSON; charset=utf-8", typeJSON},
		{"application/*", typeJSON},
		// Equally welcome: AG-UI clients expect a stream.
		{"application/json, text/event-stream", typeSSE},
		{"application/json, text/plain, */*", typeSSE},
		{"application/json, */*;q=0.8", typeJSON},
		{"application/json;q=0.5, text/event-stream;q=0.4", typeJSON},
		{"application/json;q=0.4, text/event-stream;q=0.5", typeSSE},
		{"text/event-stream;q=0, */*", typeJSON},
		{"application/json;q=0, */*", typeSSE},
		{"*/*;q=0.1, text/*;q=0", typeJSON},
		{"application/json;q=0.2, application/json;q=0.9, text/event-stream;q=0.5", typeJSON},
		{`text/plain;x="a,b", application/json`, typeJSON},
		// The protobuf form is not served; clients that know it know SSE too.
		{"application/vnd.ag-ui.event+proto, text/event-stream;q=0.9", typeSSE},
		{"application/vnd.ag-ui.event+proto", none},
		{"application/xml", none},
		{"text/html, application/xhtml+xml", none},
		{"*/*;q=0", none},
		{"text/event-stream;q=0", none},
		// An unreadable header expresses no preference.
		{"json", typeSSE},
		{",,;q=1,", typeSSE},
		{"application/json;q=much", typeSSE},
		{"application/json;q=-1", typeSSE},
		{"application/json;q=NaN", typeSSE},
	} {
		asJSON, err := wantsJSON([]string{c.accept})
		got := typeSSE
		switch {
		case err != nil:
			got = none
			if e := holdfast.AsError(err); e.Code != codes.NotAcceptable || !strings.Contains(e.Hint, typeJSON) {
				t.Errorf("%q: %v", c.accept, e)
			}
		case asJSON:
			got = typeJSON
		}
		if got != c.want {
			t.Errorf("Accept %q is answered with %s, want %s", c.accept, got, c.want)
		}
	}
	if asJSON, err := wantsJSON([]string{"text/plain", "application/json"}); err != nil || !asJSON {
		t.Errorf("two headers are one list: %v %v", asJSON, err)
	}
}

// FuzzAccept: whatever is sent, there is an answer. A valid range before it decides,
// unless what follows names the same media types; and an additional element that is
// unacceptable makes no difference.
func FuzzAccept(f *testing.F) {
	for _, s := range []string{"*/*", "application/json;q=0.5,text/*", `a/b;c="d,e\"`, "application/json;q=1e400", ",",
		";", "\x00/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		for _, r := range parseAccept([]string{accept}) {
			if !(r.q >= 0 && r.q <= 1) || !strings.Contains(r.kind, "/") || strings.ToLower(r.kind) != r.kind {
				t.Fatalf("%q has the range %+v", accept, r)
			}
		}
		asJSON, err := wantsJSON([]string{accept})
		if err != nil && asJSON {
			t.Fatalf("%q is refused and answered", accept)
		}
		again, errAgain := wantsJSON([]string{"application/xml", accept})
		if len(parseAccept([]string{accept})) > 0 && (again != asJSON || (err == nil) != (errAgain == nil)) {
			t.Fatalf("application/xml before %q changes the answer from %v %v to %v %v", accept, asJSON, err, again,
				errAgain)
		}
		if strings.Join(splitQuoted(accept), ",") != accept {
			t.Fatalf("%q is torn into %q", accept, splitQuoted(accept))
		}
	})
}
