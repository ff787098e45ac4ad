package httptool_test

// Tools against a real server on this machine.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a server that remembers what it was asked.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newService(t *testing.T, h http.HandlerFunc) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
		s.mu.Unlock()
		if h != nil {
			h(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// make makes a tool that may reach this machine.
func newTool(t *testing.T, o httptool.Options) *httptool.Tool {
	t.Helper()
	o.Allow = append(o.Allow, "127.0.0.1")
	if o.Name == "" {
		o.Name = "orders"
	}
	tool, err := httptool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tool.Close)
	return tool
}

func call(t *testing.T, tool holdfast.Tool, arguments string) (holdfast.ToolResult, error) {
	t.Helper()
	c := holdfast.ToolCall{ID: "c1", Name: tool.Spec().Name, Key: "key1", Arguments: json.RawMessage(arguments)}
	return tool.Call(holdfast.ContextWithCall(t.Context(), c, nil), c)
}

// public returns what callers read of an error.
func public(err error) string {
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		return e.Code + ": " + e.Message
	}
	return fmt.Sprint(err)
}

// TestRequests: what is sent for which arguments.
func TestRequests(t *testing.T) {
	t.Parallel()
	const all = `{"type":"object","required":["id"],"properties":{"id":{},"q":{},"n":{}}}`
	for _, c := range []struct {
		o               httptool.Options
		arguments, want string
	}{
		{httptool.Options{URL: "/orders/{id}?q={q}"}, `{"id":"7","q":"a b"}`, "GET /orders/7?q=a%20b"},
		{httptool.Options{URL: "/orders/{id}?q={q}"}, `{"id":"a?b#c&d=e;f:g@h+i%j"}`,
			"GET /orders/a%3Fb%23c%26d%3De%3Bf%3Ag%40h%2Bi%25j"},
		{httptool.Options{URL: "/orders?q={q}&fixed=1"}, `{"q":"a&admin=true#x/../%26"}`,
			"GET /orders?q=a%26admin%3Dtrue%23x%2F..%2F%2526&fixed=1"},
		{httptool.Options{URL: "/orders?fixed=a=b&q={q}&flag"}, `{}`, "GET /orders?fixed=a=b&flag"},
		{httptool.Options{URL: "/x-{id}.json?a={q}-{n}", Parameters: json.RawMessage(all)},
			`{"id":1.50,"q":true,"n":9007199254740993}`, "GET /x-1.50.json?a=true-9007199254740993"},
		{httptool.Options{URL: "/{id}?q={q}&n={n}", Parameters: json.RawMessage(all)},
			`{"id":"a","q":["x","y&z"],"n":null}`, "GET /a?q=x&q=y%26z"},
		{httptool.Options{URL: "/", Method: "post",
			Body:       json.RawMessage(`{"a":["{q}",1.10,"to {id}"],"b":"{n}","c":{"d":"{id}"},"e":null}`),
			Parameters: json.RawMessage(all)},
			`{"id":"\"}]","q":{"x":[1.0,2]}}`, `POST / {"a":[{"x":[1.0,2]},1.10,"to \"}]"],"c":{"d":"\"}]"},"e":null}`},
		{httptool.Options{URL: "/o/{id}", Method: "PUT", Parameters: json.RawMessage(all)},
			`{"n":1e2,"id":"a","q":null}`, `PUT /o/a {"n":1e2,"q":null}`},
		{httptool.Options{URL: "/o/{id}", Method: "DELETE"}, `{"id":"a"}`, `DELETE /o/a`},
		{httptool.Options{URL: "/o/{call.key}?k={call.key}", Method: "POST", Body: json.RawMessage(`["{call.key}"]`)},
			``, `POST /o/key1?k=key1 ["key1"]`},
		{httptool.Options{URL: "/o/${SECRET}?k=${SECRET}"}, ``, `GET /o/se%2Fcret%26x?k=se%2Fcret%26x`},
	} {
		s := newService(t, nil)
		c.o.URL = s.URL + c.o.URL
		c.o.Getenv = func(string) string { return "se/cret&x" }
		if _, err := call(t, newTool(t, c.o), c.arguments); err != nil {
			t.Errorf("%s: %v", c.want, err)
		} else if got := s.seen(); len(got) != 1 || got[0] != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestArgumentsThatLeadElsewhere: nothing is sent.
func TestArgumentsThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", ".", "..", "../admin", "a/b", `a\b`, "%2e%2e", "%252e%252E", "a%2fb", "a%255cb",
		"..;x", "%2e%2e;%zz", "..%2f..%2f%zz", "a%5c%z", "a\nb", "\x00", "%00"} {
		s := newService(t, nil)
		arguments, _ := json.Marshal(map[string]string{"id": id})
		_, err := call(t, newTool(t, httptool.Options{URL: s.URL + "/orders/{id}/items"}), string(arguments))
		if !errors.Is(err, holdfast.ErrArguments) || len(s.seen()) > 0 {
			t.Errorf("%q: %v, %v", id, err, s.seen())
		}
	}
	s := newService(t, nil)
	two := newTool(t, httptool.Options{URL: s.URL + "/orders/{a}{b}?q={q}",
		Headers: map[string]string{"X-Region": "r-{c}"}})
	for _, arguments := range []string{
		`{"a":".","b":".","c":"x"}`, `{"a":"x","b":"y","c":"a\r\nX-Admin: 1"}`, `{"a":"x","b":"y","c":"a","q":["x"]}`,
		`{"a":"x","b":"y","c":"a","more":1}`, `{"a":"x"}`, `[]`, `{"a":"x","a":"y","b":"z","c":""}`,
		`{"a":"x","b":"y","c":"a","q":"1","q":"2"}`, `{`,
	} {
		if _, err := call(t, two, arguments); !errors.Is(err, holdfast.ErrArguments) || len(s.seen()) > 0 {
			t.Errorf("%s: %v, %v", arguments, err, s.seen())
		}
	}
}

// TestHeaders: values of the environment and of arguments, the key by the effect, and no
// more of them than the tool declares.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for effect, key := range map[holdfast.Effect]string{holdfast.EffectPure: "", holdfast.EffectIdempotent: "key1",
		holdfast.EffectOnce: "key1"} {
		var got http.Header
		s := newService(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
		tool := newTool(t, httptool.Options{
			URL:    "${BASE}/o",
			Method: "POST",
			Effect: effect,
			Getenv: func(name string) string {
				return map[string]string{"BASE": s.URL + "/v2", "TOKEN": "t0ken-of-us"}[name]
			},
			Headers: map[string]string{
				"Authorization": "Bearer ${TOKEN}",
				"X-Region":      "eu-{region}",
				"X-Other":       "{other}",
				"content-type":  "application/vnd.api+json",
			},
			Parameters: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string"},` +
				`"other":{"type":"string"},"text":{}}}`),
		})
		if _, err := call(t, tool, `{"region":"1","text":"x"}`); err != nil {
			t.Fatal(err)
		}
		if got.Get("Authorization") != "Bearer t0ken-of-us" || got.Get("X-Region") != "eu-1" ||
			len(got.Values("X-Other")) > 0 || got.Get("Content-Type") != "application/vnd.api+json" {
			t.Error(got)
		}
		if got.Get("Idempotency-Key") != key {
			t.Errorf("%s: the key is %q", effect, got.Get("Idempotency-Key"))
		}
		if seen := s.seen(); seen[0] != `POST /v2/o {"text":"x"}` {
			t.Error(seen)
		}
	}
}

// TestStatuses: what each status means, by effect.
func TestStatuses(t *testing.T) {
	t.Parallel()
	const done, refused, unknown = "done", "refused", "unknown"
	for _, c := range []struct {
		status     int
		pure, once string
	}{
		{200, done, done}, {201, done, done}, {204, done, done}, {301, refused, refused}, {303, refused, done},
		{307, refused, refused}, {400, refused, refused},
		{401, refused, refused}, {404, refused, refused}, {408, refused, refused}, {409, refused, refused},
		{429, refused, refused}, {500, refused, unknown},
		{501, refused, refused}, {502, refused, unknown}, {503, refused, refused}, {504, refused, unknown},
		{507, refused, refused}, {599, refused, unknown},
	} {
		s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			if c.status/100 == 3 {
				w.Header().Set("Location", "https://other.example/x?token=secret")
			}
			w.WriteHeader(c.status)
			if c.status >= 400 {
				_, _ = io.WriteString(w, `{"error":"because"}`)
			}
		})
		for effect, want := range map[holdfast.Effect]string{holdfast.EffectPure: c.pure,
			holdfast.EffectIdempotent: c.pure, holdfast.EffectOnce: c.once, holdfast.EffectQuery: c.once} {
			o := httptool.Options{URL: s.URL, Method: "POST", Effect: effect, NotDone: []int{501, 503, 507}}
			if effect == holdfast.EffectQuery {
				o.LookUp = s.URL
			}
			if effect == holdfast.EffectIdempotent && c.status == 303 {
				want = done
			}
			result, err := call(t, newTool(t, o), "")
			got := done
			switch {
			case errors.Is(err, holdfast.ErrOutcomeUnknown):
				got = unknown
			case err != nil:
				got = err.Error()
			case result.Failed:
				got = refused
				if c.status >= 400 && (!strings.Contains(result.Text, "7s") ||
					!strings.Contains(result.Text, "because")) {
					t.Errorf("%d: %s", c.status, result.Text)
				}
			}
			if got != want {
				t.Errorf("%d of a tool that is %s: %s, want %s", c.status, effect, got, want)
			}
			if strings.Contains(result.Text, "secret") {
				t.Error(result.Text)
			}
		}
	}
}

// deaths are ways to fail. A server of each kind is at the address that it returns; the
// count is how many requests it got.
var deaths = map[string]func(*testing.T) (address string, count func() int){
	"nobody is there": func(t *testing.T) (string, func() int) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return "http://" + l.Addr().String(), func() int { return 0 }
	},
	"not TLS": func(t *testing.T) (string, func() int) {
		s := newService(t, nil)
		return "https" + strings.TrimPrefix(s.URL, "http"), func() int { return 0 }
	},
	"no such name": func(*testing.T) (string, func() int) { return "http://nowhere.example", func() int { return 0 } },
	"private":      func(*testing.T) (string, func() int) { return "http://private.example", func() int { return 0 } },
	"broken": func(t *testing.T) (string, func() int) {
		s := newService(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		return s.URL, func() int { return len(s.seen()) }
	},
	"silent": func(t *testing.T) (string, func() int) {
		s := newService(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		return s.URL, func() int { return len(s.seen()) }
	},
	"torn": func(t *testing.T) (string, func() int) {
		s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		})
		return s.URL, func() int { return len(s.seen()) }
	},
}

type fakeNames struct{}

func (fakeNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "private.example" {
		return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

var port = regexp.MustCompile(`:\d{4,5}\b`)

// TestUnsentAgain: of a call that may have been started before, it is not said that nothing was
// sent.
func TestUnsentAgain(t *testing.T) {
	t.Parallel()
	const earlier = " An earlier one may have taken effect."
	for name, want := range map[string]string{
		"nobody is there": "http_no_answer: This try sent nothing: 127.0.0.1:PORT cannot be reached.",
		"private":         `http_address_refused: This try sent nothing: "private.example"`,
	} {
		for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce} {
			address, _ := deaths[name](t)
			tool := newTool(t, httptool.Options{
				URL: address + "/o", Method: "POST", Effect: effect, Resolver: fakeNames{},
				Allow: []string{"127.0.0.0/8"},
			})
			c := holdfast.ToolCall{ID: "c1", Name: "order", Key: "key1", Arguments: json.RawMessage(`{}`), Again: true}
			_, err := tool.Call(holdfast.ContextWithCall(t.Context(), c, nil), c)
			got := port.ReplaceAllString(public(err), ":PORT")
			if !strings.HasPrefix(got, want) || strings.HasSuffix(got, earlier) != (effect != holdfast.EffectPure) {
				t.Errorf("%s, %s: %s", name, effect, got)
			}
		}
	}
}

// TestDeaths: never sent and perhaps done are told apart, by effect; and no error shows
// what was in the URL or a header.
func TestDeaths(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		text     string // of the error
		onceText string
		sent     int
	}{
		"nobody is there": {"http_unreachable: Nothing was sent", "http_unreachable: Nothing was sent", 0},
		"not TLS":         {"http_unreachable: Nothing was sent", "http_unreachable: Nothing was sent", 0},
		"no such name":    {"http_unreachable: Nothing was sent", "http_unreachable: Nothing was sent", 0},
		"private": {`http_address_refused: Nothing was sent: "private.example"`,
			`http_address_refused: Nothing was sent: "private.example"`, 0},
		"broken": {"http_no_answer: The request was sent to 127.0.0.1:PORT, and the connection broke",
			"http_no_answer: The request was sent to 127.0.0.1", 1},
		"silent": {"http_no_answer: The request was sent to 127.0.0.1:PORT, and no answer came within",
			"http_no_answer: The request was sent to 127.0.0.1", 1},
		"torn": {"http_no_answer: The request was sent to 127.0.0.1:PORT, and the connection broke", "", 1},
	} {
		for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce} {
			t.Run(name+" "+string(effect), func(t *testing.T) {
				t.Parallel()
				address, count := deaths[name](t)
				timeout := 10 * time.Second
				if name == "silent" {
					timeout = time.Second
				}
				result, err := call(t, newTool(t, httptool.Options{
					URL:      address + "/o?key=${TOKEN}",
					Method:   "POST",
					Headers:  map[string]string{"Authorization": "Bearer ${TOKEN}"},
					Effect:   effect,
					Timeout:  timeout,
					Resolver: fakeNames{},
					Getenv:   func(string) string { return "t0ken-of-us" },
				}), "")
				text := want.text
				if effect == holdfast.EffectOnce {
					text = want.onceText
				}
				if text == "" { // a status came, so it is known what became of the call
					if err != nil || !strings.Contains(result.Text, "broke off") ||
						!strings.Contains(result.Text, "half") {
						t.Errorf("%+v, %v", result, err)
					}
				} else if !strings.HasPrefix(port.ReplaceAllString(public(err), ":PORT"), text) ||
					strings.HasSuffix(public(err),
						"taken effect.") != (want.sent > 0 && effect != holdfast.EffectPure) {
					t.Errorf("%v", err)
				}
				if unknown := errors.Is(err,
					holdfast.ErrOutcomeUnknown); unknown != (effect == holdfast.EffectOnce && want.sent > 0 &&
					text != "") {
					t.Errorf("unknown is %t: %v", unknown, err)
				}
				if strings.Contains(fmt.Sprint(err), "t0ken") || strings.Contains(public(err), "10.1.2.3") {
					t.Error(err)
				}
				if n := count(); n != want.sent {
					t.Errorf("%d requests were sent, want %d", n, want.sent)
				}
			})
		}
	}
}

// TestNothingIsSentTwice: net/http sends a request again by itself when a connection that it
// has used before breaks. A call of a once or query tool still arrives once, of whichever
// method.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		for _, effect := range []holdfast.Effect{holdfast.EffectOnce, holdfast.EffectQuery, holdfast.EffectPure} {
			first := true
			s := newService(t, func(http.ResponseWriter, *http.Request) {
				if !first {
					panic(http.ErrAbortHandler)
				}
				first = false
			})
			o := httptool.Options{URL: s.URL + "/o", Method: method, Effect: effect}
			if effect == holdfast.EffectQuery {
				o.LookUp = s.URL
			}
			tool := newTool(t, o)
			if _, err := call(t, tool, ""); err != nil {
				t.Fatal(err)
			}
			_, err := call(t, tool, "")
			again := effect == holdfast.EffectPure && (method == "GET" || method == "HEAD")
			if want := 2; !again && (len(s.seen()) != want ||
				!errors.Is(err, holdfast.ErrOutcomeUnknown) && effect != holdfast.EffectPure) {
				t.Errorf("%s %s: %v, %v", effect, method, s.seen(), err)
			}
			if again && len(s.seen()) != 3 { // or this test shows nothing
				t.Errorf("%s %s: net/http has not tried again: %v", effect, method, s.seen())
			}
		}
	}
}

// TestLookUp: what became of a call, by its key.
func TestLookUp(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]holdfast.Fate{200: holdfast.FateDone, 404: holdfast.FateNotDone,
		401: holdfast.FateUnknown, 302: holdfast.FateUnknown} {
		s := newService(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Idempotency-Key") != "" {
				t.Error("a question carries the key of the call")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"id":"o7"}`)
		})
		tool := newTool(t, httptool.Options{
			URL:    s.URL + "/orders",
			Method: "POST",
			LookUp: s.URL + "/by-key/{call.key}?n={n}",
			Body:   json.RawMessage(`"{n}"`),
			Result: httptool.Result{Select: []string{"/id"}},
		})
		spec := tool.Spec()
		c := holdfast.ToolCall{Name: spec.Name, Key: "key7", Arguments: json.RawMessage(`{"n":"1"}`)}
		result, fate, err := spec.Query(holdfast.ContextWithCall(t.Context(), c, nil), c)
		if fate != want || spec.Effect != holdfast.EffectQuery ||
			(fate == holdfast.FateDone) != (result.Text == "o7") || (fate == holdfast.FateUnknown) != (err != nil) {
			t.Errorf("%d: %s, %+v, %v", status, fate, result, err)
		}
		if seen := s.seen(); len(seen) != 1 || seen[0] != "GET /by-key/key7?n=1" {
			t.Error(seen)
		}
	}
}

// TestLookUpAgain: a service that cannot say now what became of a call is asked again, for a
// while.
func TestLookUpAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		able    int64 // how many requests it takes until the service is
		timeout time.Duration
		want    holdfast.Fate
	}{
		"back":  {2, 0, holdfast.FateDone},
		"never": {1 << 40, 50 * time.Millisecond, holdfast.FateUnknown},
	} {
		var asked atomic.Int64
		s := newService(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) < c.able {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		tool := newTool(t, httptool.Options{URL: s.URL, Method: "POST", LookUp: s.URL + "/{call.key}",
			Timeout: c.timeout})
		call := holdfast.ToolCall{Name: tool.Spec().Name, Key: "key7"}
		_, fate, err := tool.Spec().Query(holdfast.ContextWithCall(t.Context(), call, nil), call)
		if fate != c.want || (err == nil) != (fate == holdfast.FateDone) {
			t.Errorf("%s: %s, %v", name, fate, err)
		}
	}
}

// TestRedirects: none are followed unless it is said, and then only those of GET that stay.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := newService(t, nil)
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stay":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/leave":
			http.Redirect(w, r, other.URL+"/end", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
		_, _ = io.WriteString(w, "at "+r.URL.Path)
	})
	for _, c := range []struct {
		path, method string
		follow       bool
		want         int // requests
	}{{"/stay", "GET", false, 1}, {"/stay", "GET", true, 2}, {"/leave", "GET", true, 1}, {"/stay", "POST", true, 1},
		{"/leave", "POST", true, 1}, {"/loop", "GET", true, 6}} {
		before := len(s.seen())
		result, err := call(t, newTool(t,
			httptool.Options{URL: s.URL + c.path, Method: c.method, FollowRedirects: c.follow, Effect: "pure"}), "")
		if err != nil || len(s.seen())-before != c.want || result.Failed != (c.want != 2) {
			t.Errorf("%+v: %+v, %v: %v", c, result, err, s.seen()[before:])
		}
	}
	if len(other.seen()) > 0 {
		t.Error(other.seen())
	}
}

// TestRoundTripper: credentials can be added to each request, and the guard stays below.
func TestRoundTripper(t *testing.T) {
	t.Parallel()
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "for "+r.Header.Get("Authorization"))
	})
	wrap := func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "user "+holdfast.CallFrom(r.Context()).Key)
			return base.RoundTrip(r)
		})
	}
	result, err := call(t, newTool(t, httptool.Options{URL: s.URL, RoundTripper: wrap}), "")
	if err != nil || result.Text != "for user key1" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := call(t, newTool(t, httptool.Options{URL: "http://[::1]/", RoundTripper: wrap}),
		""); !strings.HasPrefix(public(err), "http_address_refused") {
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHTTP2: what was sent is told from what was not over HTTP/2 too, and nothing is sent
// twice there.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	first := true
	s := &service{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("this is %s", r.Proto)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, r.Method)
		if !first {
			panic(http.ErrAbortHandler)
		}
		first = false
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	tool := newTool(t, httptool.Options{
		URL:          s.URL,
		Method:       "POST",
		Body:         json.RawMessage(`{}`),
		RoundTripper: func(http.RoundTripper) http.RoundTripper { return s.Client().Transport },
	})
	if _, err := call(t, tool, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, tool, ""); !errors.Is(err, holdfast.ErrOutcomeUnknown) || len(s.seen()) != 2 {
		t.Errorf("%v after %v", err, s.seen())
	}
	s.Close()
	if _, err := call(t, tool, ""); !strings.HasPrefix(public(err), "http_unreachable") {
		t.Error(err)
	}
}

// TestTraceparent: a service gets the trace context of the run, unless the tool's own header
// says another one; a page that a model has named gets none.
func TestTraceparent(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const own = "00-11111111111111111111111111111111-2222222222222222-00"
	var got []string
	s := newService(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("traceparent")) })
	ctx := holdfast.ContextWithRun(t.Context(),
		&holdfast.RunContext{Iteration: func() holdfast.Iteration { return holdfast.Iteration{Traceparent: parent} }})
	page, err := httptool.Fetch(httptool.FetchOptions{Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	for _, tool := range []holdfast.Tool{newTool(t, httptool.Options{URL: s.URL}),
		newTool(t, httptool.Options{URL: s.URL, Headers: map[string]string{"Traceparent": own}}), page} {
		arguments := json.RawMessage(`{}`)
		if tool == page {
			arguments = json.RawMessage(`{"url":"` + s.URL + `"}`)
		}
		if _, err := tool.Call(ctx, holdfast.ToolCall{Arguments: arguments}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{parent, own, ""}; !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
}

// TestCredentials: a call without a credential was certainly not sent, whatever its effect;
// who has to log in is asked to; and a service that repeats the credential, in whatever
// form, does not show it to the model.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const token = `t0ken/of+us="<ü>`
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		escaped, _ := json.Marshal(got)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", got, escaped, strings.ReplaceAll(string(escaped), "/", `\/`),
			url.QueryEscape(got))
	})
	for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce,
		holdfast.EffectQuery} {
		var missing error
		source := credential.SourceFunc(func(context.Context, credential.Request) (secret.Text, error) {
			return secret.New(token), missing
		})
		o := httptool.Options{
			URL:    s.URL,
			Method: "POST",
			Effect: effect,
			RoundTripper: func(base http.RoundTripper) http.RoundTripper {
				return &credential.Transport{Source: source, Server: s.URL, Base: base}
			},
		}
		if effect == holdfast.EffectQuery {
			o.LookUp = s.URL
		}
		tool := newTool(t, o)
		if result, err := call(t, tool, ""); err != nil || strings.Contains(result.Text, "t0ken") ||
			!strings.Contains(result.Text, "[secret]") {
			t.Errorf("%s: %+v, %v", effect, result, err)
		}
		before := len(s.seen())
		missing = &credential.LoginRequired{URL: "https://login.example"}
		var ask *holdfast.Interrupt
		if _, err := call(t, tool, ""); !errors.As(err, &ask) || ask.Reason != credential.ReasonLogin ||
			errors.Is(err, holdfast.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", effect, err)
		}
		missing = errors.New("the vault is sealed")
		if _, err := call(t, tool, ""); errors.Is(err, holdfast.ErrOutcomeUnknown) ||
			!strings.HasPrefix(public(err), httptool.CodeNoCredential+": Nothing was sent: the vault is sealed") {
			t.Errorf("%s: %v", effect, err)
		}
		if n := len(s.seen()); n != before {
			t.Errorf("%s: %d requests were sent", effect, n-before)
		}
	}
}

// TestSecretsInAnswers: what is hidden, and that nothing else is.
func TestSecretsInAnswers(t *testing.T) {
	t.Parallel()
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("X-Api-Key")+"! application/json 2026-01-31 "+r.Header.Get("Authorization"))
	})
	tool := newTool(t, httptool.Options{
		URL: s.URL,
		Getenv: func(name string) string {
			return map[string]string{"SHORT": "abcdefgh",
				"LONG": "abcdefghijkl"}[name]
		},
		Headers: map[string]string{
			"Accept":        "application/json",
			"X-Version":     "2026-01-31",
			"X-Api-Key":     "${LONG}",
			"X-Other":       "${SHORT}",
			"Authorization": "Bearer written-down",
		},
	})
	if result, err := call(t, tool, ""); err != nil ||
		result.Text != "[secret]! application/json 2026-01-31 Bearer [secret]" {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestOtherNamesOfTheKey: a header that net/http takes for leave to send a request again
// does not make a call arrive twice.
func TestOtherNamesOfTheKey(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "DELETE"} {
		first := true
		s := newService(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Idempotency-Key") != "key1" {
				t.Error(r.Header)
			}
			if !first {
				panic(http.ErrAbortHandler)
			}
			first = false
		})
		tool := newTool(t, httptool.Options{URL: s.URL, Method: method,
			Headers: map[string]string{"X-Idempotency-Key": "{call.key}"}})
		for range 2 {
			_, _ = call(t, tool, "")
		}
		if n := len(s.seen()); n != 2 {
			t.Errorf("%s: %d requests", method, n)
		}
	}
}

// TestRebindingRedirect: a name that becomes private after the first answer is refused, and
// the error does not say that nothing was sent.
func TestRebindingRedirect(t *testing.T) {
	t.Parallel()
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		http.Redirect(w, r, "/next", http.StatusFound)
	})
	names := &changing{first: "127.0.0.1", then: "10.0.0.1"}
	tool := newTool(t, httptool.Options{
		URL:             "http://shop.example:" + s.port(t),
		Effect:          "once",
		FollowRedirects: true,
		Resolver:        names,
	})
	_, err := call(t, tool, "")
	if !errors.Is(err, holdfast.ErrOutcomeUnknown) || !strings.HasPrefix(public(err), httptool.CodeRefused) ||
		strings.Contains(public(err), "Nothing was sent") || len(s.seen()) != 1 {
		t.Errorf("%v, %v", err, s.seen())
	}
}

func (s *service) port(t *testing.T) string {
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// changing resolves all names to one address first, and then to another.
type changing struct {
	first, then string
	asked       int
}

func (c *changing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if c.asked++; c.asked == 1 {
		return []netip.Addr{netip.MustParseAddr(c.first)}, nil
	}
	return []netip.Addr{netip.MustParseAddr(c.then)}, nil
}
