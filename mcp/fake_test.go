package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fake is a server of the revision 2026-07-28 over HTTP that answers what the test says.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	tools string // the members of a list of tools
	pages bool   // the list has no end
	// call answers tools/call and whatever else the fake does not know; params are the
	// request's.
	call func(w http.ResponseWriter, m message)
	seen []message
}

// message is a request as the fake got it.
type message struct {
	ID     json.RawMessage            `json:"id"`
	Method string                     `json:"method"`
	Params map[string]json.RawMessage `json:"params"`
	Header http.Header                `json:"-"`
	body   *http.Request
}

const oneTool = `{"name":"work","inputSchema":{"type":"object"}}`

// newFake starts a fake.
func newFake(t testing.TB, tools string, call func(w http.ResponseWriter, m message)) *fake {
	t.Helper()
	f := &fake{tools: tools, call: call}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// ServeHTTP implements [http.Handler].
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := message{Header: r.Header, body: r}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	f.mu.Lock()
	f.seen = append(f.seen, m)
	tools, call, next := f.tools, f.call, ""
	if f.pages {
		next = fmt.Sprintf(`"nextCursor":"%d",`, len(f.seen))
	}
	f.mu.Unlock()
	switch m.Method {
	case "server/discover":
		m.result(w, `{"resultType":"complete","supportedVersions":["2026-07-28"],`+
			`"capabilities":{"tools":{}},"ttlMs":0,`+
			`"cacheScope":"private"}`)
	case "tools/list":
		m.result(w, `{"resultType":"complete",`+next+`"tools":[`+tools+`],"ttlMs":0,"cacheScope":"private"}`)
	default:
		call(w, m)
	}
}

// result answers with a result.
func (m *message) result(w http.ResponseWriter, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// error answers with an error, with a status of its own.
func (m *message) error(w http.ResponseWriter, status, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

// cut breaks the connection.
func (m *message) cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}

// got returns the requests of a method so far.
func (f *fake) got(method string) (got []message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.seen {
		if m.Method == method {
			got = append(got, m)
		}
	}
	return got
}

// has reports whether a text has all of these.
func has(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
