package http

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/threads"
)

const someDocument = `{"kind":"holdfast.thread","version":1,"tenant":"acme","thread":"t","head":{},"state":{},` +
	`"messages":[],"values":{},"records":[]}`

// mover is the part of the fake engine that exports and imports threads.
type mover struct {
	f *fake
	// asked is atomic because a client asks again when a document is cut off at its beginning.
	asked atomic.Value
	// late is the error after the first part of a document; early the one before it.
	early, late error
}

func (m *mover) Export(_ context.Context, _ holdfast.Principal, thread string) (func(io.Writer) error, error) {
	m.asked.Store("export " + thread)
	return func(w io.Writer) error {
		if m.early != nil {
			return m.early
		}
		if _, err := io.WriteString(w, someDocument); err != nil {
			return err
		}
		return m.late
	}, m.f.err
}

func (m *mover) Import(_ context.Context, _ holdfast.Principal, thread string, document []byte) (*threads.Info, error) {
	m.asked.Store("import " + thread + " " + string(document))
	return m.f.info, m.f.err
}

// TestTransfer: a document goes out and comes in as it is; what is no document is refused before
// anybody looks at it.
func TestTransfer(t *testing.T) {
	m := &mover{f: &fake{}}
	url := serve(t, m.f, func(c *Config) { c.Transfer = m }).URL
	for request, want := range map[string]string{
		"GET /threads/a%2Fb/export":                                       "200 export a/b",
		"POST /threads/import " + someDocument:                            "201 import  " + someDocument,
		"POST /threads/import?threadId=mine " + someDocument:              "201 import mine " + someDocument,
		"POST /threads/import?threadId=%01 " + someDocument:               "400 ",
		`POST /threads/import {"kind":"a","kind":"b"}`:                    "400 ",
		`POST /threads/import []`:                                         "400 ",
		`POST /threads/import {"a":"` + strings.Repeat("x", 1<<10) + `"}`: "413 ",
	} {
		m.asked.Store("")
		method, path, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(path, " ")
		res, got := do(t, method, url+path, body, "Content-Type", "application/json")
		if got := fmt.Sprint(res.StatusCode, " ", m.asked.Load()); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
		if strings.Contains(got, `"message":" `) {
			t.Errorf("%s: %s", request, got)
		}
		if method == "GET" && (got != someDocument ||
			!strings.Contains(res.Header.Get("Content-Disposition"), "attachment")) {
			t.Errorf("the document is %s, %v", got, res.Header)
		}
	}
	if res, _ := do(t, "POST", url+"/threads/import", someDocument, "Content-Type", "application/json", "If-Match",
		`"c1"`); res.StatusCode != 400 {
		t.Errorf("with a condition: %d", res.StatusCode)
	}
	m.early = holdfast.Errorf(codes.RunInProgress, "It changes.")
	if res, _ := do(t, "GET", url+"/threads/t/export", ""); res.StatusCode != 409 ||
		res.Header.Get("Content-Disposition") != "" {
		t.Errorf("a thread that cannot be exported: %d %v", res.StatusCode, res.Header)
	}
	m.early, m.late = nil, holdfast.Errorf(codes.StoreUnavailable, "It is gone.")
	res, err := http.Get(url + "/threads/t/export")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err == nil {
		t.Error("a document that is cut off looks whole")
	}
}
