package httptool_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
)

// TestValidate: an error begins with the field that is wrong, and shows no secret.
func TestValidate(t *testing.T) {
	t.Parallel()
	parameters := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		o    httptool.Options
		want string
	}{
		{httptool.Options{Name: "a b"}, "name: "},
		{httptool.Options{Name: strings.Repeat("a", 65)}, "name: "},
		{httptool.Options{Method: "TRACE"}, "method: "},
		{httptool.Options{Method: "GET", Body: parameters(`{}`)}, "body: "},
		{httptool.Options{Effect: "twice"}, "effect: "},
		{httptool.Options{Effect: "query"}, "lookUp: "},
		{httptool.Options{Effect: "once", LookUp: "https://a.example/"}, "lookUp: "},
		{httptool.Options{LookUp: "https://a.example/{other}"}, "lookUp: {other}"},
		{httptool.Options{LookUp: "/x"}, "lookUp: "},
		{httptool.Options{LookUp: "https://b.example/x"}, "lookUp: it must go to"},
		{httptool.Options{InDoubt: "x"}, "inDoubt: "},
		{httptool.Options{NotDone: []int{404}}, "notDone: "},
		{httptool.Options{Timeout: -1}, "timeout: "},
		{httptool.Options{Result: httptool.Result{MaxBytes: -1}}, "result.maxBytes: "},
		{httptool.Options{Result: httptool.Result{Select: []string{"/a", "b"}}}, "result.select[1]: "},
		{httptool.Options{Result: httptool.Result{Select: []string{"/a~2"}}}, "result.select[0]: "},
		{httptool.Options{Result: httptool.Result{Select: []string{"/a"}, Template: "x"}}, "result: "},
		{httptool.Options{Result: httptool.Result{Template: "x {/a"}}, "result.template: "},
		{httptool.Options{URL: "orders"}, "url: "},
		{httptool.Options{URL: "ftp://a.example/"}, "url: "},
		{httptool.Options{URL: "https:///x"}, "url: "},
		{httptool.Options{URL: "https://user:secret@a.example/"}, "url: "},
		{httptool.Options{URL: "https://{host}/"}, "url: "},
		{httptool.Options{URL: "https://a.example{x}/"}, "url: "},
		{httptool.Options{URL: "https://a.example:{port}/"}, "url: "},
		{httptool.Options{URL: "https://${SECRET}/"}, "url: "},
		{httptool.Options{URL: "https://a.${SECRET}/"}, "url: "},
		{httptool.Options{URL: "{base}/x"}, "url: "},
		{httptool.Options{URL: "https://a.example/a b"}, "url: "},
		{httptool.Options{URL: "https://a.example/#x"}, "url: "},
		{httptool.Options{URL: "https://a.example/%zz"}, "url: "},
		{httptool.Options{URL: "https://a.example/../x"}, "url: "},
		{httptool.Options{URL: "https://a.example/{a"}, "url: "},
		{httptool.Options{URL: "https://a.example/a}"}, "url: "},
		{httptool.Options{URL: "https://a.example/{a b}"}, "url: "},
		{httptool.Options{URL: "https://a.example/{}"}, "url: "},
		{httptool.Options{URL: "https://a.example/?{a}=1"}, "url: "},
		{httptool.Options{URL: "https://a.example/?a=1?b"}, "url: "},
		{httptool.Options{URL: "https://a.example/${UNSET}"}, "url: the environment variable UNSET"},
		{httptool.Options{URL: "https://a.example/${sk-secret}"}, "url: "},
		{httptool.Options{Headers: map[string]string{"X Y": "1"}}, "headers: X Y: "},
		{httptool.Options{Headers: map[string]string{"Host": "b"}}, "headers: Host: "},
		{httptool.Options{Headers: map[string]string{"authorization": "{a}"}}, "headers: authorization: "},
		{httptool.Options{Headers: map[string]string{"X": "secret\nY: 1"}}, "headers: X: "},
		{httptool.Options{Headers: map[string]string{"X": "${LINES}"}}, "headers: X: "},
		{httptool.Options{Body: parameters(`{`)}, "body: "},
		{httptool.Options{Body: parameters(`{"a":"${SECRET}"}`)}, "body: "},
		{httptool.Options{Body: parameters(`{"a":"{b"}`)}, "body: "},
		{httptool.Options{Parameters: parameters(`[]`)}, "parameters: "},
		{httptool.Options{Parameters: parameters(`{"type":"string"}`)}, "parameters: "},
		{httptool.Options{Parameters: parameters(`{"type":"object","properties":{"a":{"type":"strin"}}}`)},
			"parameters: "},
		{httptool.Options{Parameters: parameters(`{"type":"object","properties":{"a":{}}}`)}, "parameters: a is used"},
		{httptool.Options{URL: "https://a.example/?a={b}",
			Parameters: parameters(`{"type":"object","properties":{"a":{}}}`)},
			"parameters: {b}"},
		{httptool.Options{URL: "https://a.example/{a}",
			Parameters: parameters(`{"type":"object","properties":{"a":{}}}`)},
			"parameters: {a}"},
		{httptool.Options{Allow: []string{"http://x"}}, "allow[0]: "},
		{httptool.Options{Proxy: "proxy"}, "proxy: "},
	} {
		if c.o.Name == "" {
			c.o.Name = "orders"
		}
		if c.o.URL == "" {
			c.o.URL = "https://a.example/"
		}
		c.o.Getenv = func(name string) string {
			return map[string]string{"SECRET": "se/cret", "LINES": "secret\nX: 1"}[name]
		}
		err := c.o.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %s…", c.o, err, c.want)
		}
	}
}

// TestSpec: what the tool declares if the options leave it open.
func TestSpec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o      httptool.Options
		effect holdfast.Effect
	}{
		{httptool.Options{}, "pure"}, {httptool.Options{Method: "head"}, "pure"},
		{httptool.Options{Method: "POST"}, "once"}, {httptool.Options{Method: "PUT"}, "once"},
		{httptool.Options{Method: "DELETE"}, "once"}, {httptool.Options{Body: json.RawMessage(`{}`)}, "once"},
		{httptool.Options{Effect: "idempotent"}, "idempotent"},
		{httptool.Options{Method: "POST", LookUp: "https://a.example/"}, "query"},
	} {
		c.o.Name, c.o.URL = "orders", "https://a.example/{b}/{a}?c={c}"
		c.o.Description, c.o.InDoubt = "Orders.", "ask"
		s := newTool(t, c.o).Spec()
		if s.Effect != c.effect || (s.Query != nil) != (c.effect == "query") || s.Timeout <= 0 ||
			s.Description != "Orders." || s.InDoubt != "ask" {
			t.Errorf("%+v: %+v", c.o, s)
		}
		want := `{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"type":"string"},` +
			`"c":{"type":"string"}},"required":["a","b"],"type":"object"}`
		if string(s.Parameters) != want {
			t.Errorf("%s", s.Parameters)
		}
	}
}

// TestResults: what of an answer the model reads.
func TestResults(t *testing.T) {
	t.Parallel()
	const object = ` {"a/b": {"n": 9007199254740993, "s": "x \"y\"", "l": [1.0, {"z": null}]}, "t": "t0ken-of-us"}` +
		"\n"
	png := string([]byte{0x89, 'P', 'N', 'G', 0})
	for _, c := range []struct {
		kind, body string
		shape      httptool.Result
		want       string
	}{
		{"application/json", object, httptool.Result{},
			strings.ReplaceAll(strings.TrimSpace(object), "t0ken-of-us", "[secret]")},
		{"application/json", object, httptool.Result{Select: []string{"/a~1b/n"}}, "9007199254740993"},
		{"application/json", object, httptool.Result{Select: []string{"/a~1b/s"}}, `x "y"`},
		{"application/json", object, httptool.Result{Select: []string{"/a~1b/l/1"}}, `{"z": null}`},
		{"application/json", object, httptool.Result{Select: []string{"/a~1b/l/0", "/none", "/a~1b/l/01"}},
			`{"/a~1b/l/0":1.0,"/none":null,"/a~1b/l/01":null}`},
		{"application/json", object, httptool.Result{Select: []string{"/none/x"}},
			"[The service answered 200 OK. It has no /none/x.]"},
		{"application/json", object, httptool.Result{Template: "n is {/a~1b/n}, {s} is {/a~1b/s}, {/none}."},
			`n is 9007199254740993, {s} is x "y", .`},
		{"application/json", "[1,", httptool.Result{Select: []string{"/0"}},
			"[The service answered 200 OK. It is no JSON, so nothing could be taken out of it.]\n[1,"},
		{"text/html; charset=utf-8", "<p>héllo</p>", httptool.Result{}, "<p>héllo</p>"},
		{"text/plain; charset=iso-8859-1", "h\xe9llo", httptool.Result{}, "h�llo"},
		{"", "héllo", httptool.Result{}, "héllo"},
		{"text/plain", "", httptool.Result{}, "The service answered 200 OK without content."},
		{"text/plain", "hééé", httptool.Result{MaxBytes: 4},
			"[The service answered 200 OK. The answer has more than 4 bytes; this is its beginning.]\nhé"},
		{"application/json", object, httptool.Result{MaxBytes: 4, Select: []string{"/t"}},
			"[The service answered 200 OK. The answer has more than 4 bytes, so nothing could be taken out of it.]"},
		{"application/pdf", "%PDF\x00", httptool.Result{},
			"[The service answered 200 OK. The answer is no text: application/pdf, 5 bytes. It was left out.]"},
		{"audio/wav", "RIFF", httptool.Result{},
			"[The service answered 200 OK. The answer is no text: audio/wav, 4 bytes. It was left out.]"},
		{"image/png", png, httptool.Result{MaxBytes: 4},
			"[The service answered 200 OK. The answer is no text: image/png, more than 4 bytes. It was left out.]"},
		{"image/png", png, httptool.Result{}, "image"},
	} {
		s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{c.kind}
			_, _ = io.WriteString(w, c.body)
		})
		result, err := call(
			t,
			newTool(t, httptool.Options{
				URL:     s.URL,
				Result:  c.shape,
				Headers: map[string]string{"Authorization": "Bearer t0ken-of-us"},
			}),
			"",
		)
		if c.want == "image" {
			if len(result.Parts) != 1 || result.Parts[0].Source.MIMEType != "image/png" ||
				result.Parts[0].Source.Value != base64.StdEncoding.EncodeToString([]byte(png)) {
				t.Errorf("%+v", result)
			}
			continue
		}
		if err != nil || result.Text != c.want || result.Failed || result.Parts != nil {
			t.Errorf("%s %+v:\n%q, %v, want\n%q", c.kind, c.shape, result.Text, err, c.want)
		}
	}
}

// FuzzArguments: whatever a model writes, the request has the host, the segments and the
// members of the query that the template has, and the header is one header.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{"7", "..", "a/b", "%2e%2e%2f", "x&y=z#", "a\r\nb", "..;", "＠", "\xff", "%",
		"http://x/"} {
		f.Add(seed, seed, seed)
	}
	seen := make(chan *http.Request, 1)
	tool, err := httptool.New(httptool.Options{
		Name:    "t",
		Method:  "POST",
		URL:     "https://a.example:8443/v1/{a}/x-{a}{b}.json?q={b}&r=1-{c}&s=2",
		Headers: map[string]string{"X-C": "c {c}"},
		Body:    json.RawMessage(`{"x":"{a}","y":"- {b}"}`),
		RoundTripper: func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				seen <- r
				return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
			})
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		arguments, err := json.Marshal(map[string]string{"a": a, "b": b, "c": c})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call(t, tool, string(arguments)); err != nil {
			return
		}
		r := <-seen
		var given map[string]string
		_ = json.Unmarshal(arguments, &given) // bytes that are no UTF-8 have been replaced
		query, err := url.ParseQuery(r.URL.RawQuery)
		segments := strings.Split(r.URL.EscapedPath(), "/")
		if err != nil || r.URL.Scheme != "https" || r.URL.Host != "a.example:8443" || r.URL.User != nil ||
			r.URL.Fragment != "" || len(segments) != 4 || segments[1] != "v1" || strings.Count(r.URL.Path, "/") != 3 {
			t.Fatalf("%s: %v", r.URL, err)
		}
		if len(query) != 3 || query.Get("q") != given["b"] || query.Get("r") != "1-"+given["c"] ||
			query.Get("s") != "2" {
			t.Errorf("%s: %v", r.URL, query)
		}
		if v := r.Header.Values("X-C"); len(v) != 1 || strings.ContainsAny(v[0], "\r\n\x00") {
			t.Errorf("%q", v)
		}
		var body map[string]string
		if err := json.NewDecoder(r.Body).
			Decode(&body); err != nil || body["x"] != given["a"] || body["y"] != "- "+given["b"] {
			t.Errorf("%v, %v", body, err)
		}
	})
}
