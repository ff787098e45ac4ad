package httptool_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
)

// TestBombs: whatever a service answers, a call ends, the model reads at most what it may,
// and the effect decides what an answer that cannot be read means.
func TestBombs(t *testing.T) {
	t.Parallel()
	packed := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		result httptool.Result
		want   string // of the result, or of the error
	}{
		"a gzip bomb": {func(w http.ResponseWriter, _ *http.Request) { packed(w, strings.Repeat("0", 5<<20)) },
			httptool.Result{}, "[The service answered 200 OK. The answer has more than 1000 bytes; this " +
				"is its beginning.]\n000"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("0"), 1<<16)); err != nil {
					return
				}
			}
		}, httptool.Result{}, "[The service answered 200 OK. The answer has more than 1000 bytes; this " +
			"is its beginning.]\n000"},
		"no gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("not packed"))
		}, httptool.Result{}, "[The service answered 200 OK. The answer broke off; this is its beginning.]"},
		"a million headers": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20_000 {
				w.Header().Set(fmt.Sprint("X-", i), "0123456789")
			}
		}, httptool.Result{}, "http_no_answer: "},
		"deep JSON": {func(w http.ResponseWriter, _ *http.Request) { packed(w, strings.Repeat("[", 900)) },
			httptool.Result{Select: []string{"/0/0"}},
			"[The service answered 200 OK. It is no JSON, so nothing could be taken out of it.]\n[[["},
		"an index that is none": {func(w http.ResponseWriter, _ *http.Request) { packed(w, `[1,2]`) },
			httptool.Result{Select: []string{"/99999999999999999999"}},
			"[The service answered 200 OK. It has no /99999999999999999999.]"},
		"a large number": {func(w http.ResponseWriter, _ *http.Request) { packed(w, `{"n":1e999999999,"m":-0.10}`) },
			httptool.Result{Template: "{/n} {/m} {/x}"}, "1e999999999 -0.10 "},
		"a template in it": {func(w http.ResponseWriter, _ *http.Request) { packed(w, `{"n":"{/m}","m":"hidden"}`) },
			httptool.Result{Template: "{/n}"}, "{/m}"},
		"another charset": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
			_, _ = w.Write([]byte("caf\xe9 \x1b"))
		}, httptool.Result{}, "caf� \x1b"},
		"a charset that is none": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=\"")
			_, _ = w.Write([]byte("café"))
		}, httptool.Result{}, "café"},
		"a status of its own": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) }, httptool.Result{},
			"http_service_failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, c.answer)
			c.result.MaxBytes = 1000
			result, err := call(t, newTool(t,
				httptool.Options{URL: s.URL, Method: "POST", Effect: holdfast.EffectOnce, Result: c.result}), "")
			if err != nil {
				result.Text = public(err)
			}
			if !strings.HasPrefix(result.Text, c.want) || len(result.Text) > 1100 || len(s.seen()) != 1 {
				t.Errorf("%.200q, %d requests, want %q…", result.Text, len(s.seen()), c.want)
			}
		})
	}
}
