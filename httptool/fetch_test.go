package httptool_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
)

func newFetcher(t *testing.T, o httptool.FetchOptions) *httptool.Fetcher {
	t.Helper()
	f, err := httptool.Fetch(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func fetch(t *testing.T, f *httptool.Fetcher, url string) (holdfast.ToolResult, error) {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"url": url})
	if err != nil {
		t.Fatal(err)
	}
	return call(t, f, string(arguments))
}

// TestFetch: pages as text, other texts as they are, and failures as results.
func TestFetch(t *testing.T) {
	t.Parallel()
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, `<!DOCTYPE html><html><head><title>A &amp; B</title>`+
				`<style>p{}</style></head><BODY><script>if (a<b) alert("x</p>")</SCRIPT >
				<!-- <p>no</p> --><h1>Head<b>ing</b></h1><p>1 &lt; 2 and 3 < 4<br>next</p>`+
				`<template><p>no</p></template><ul><li>one<li>two</ul><p></p><p></p><p>end &copy;</p><a href="x>y`)
		case "/hidden":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<title>x > y</title><p title="1 > 2">a > b</p><svg><svg>no</svg>no</svg><svg/>`+
				`<p>c<!-- > --!><noscript><p>no</noscript><br>d<iframe><p>no</iframe><textarea><p>e</textarea>`+
				`<object><p>no</object><script>"<p>no"</script><!--no`)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"a": "<p>"}`)
		case "/to":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, "http://10.1.2.3/", http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://2852039166/", http.StatusFound)
		default:
			http.Error(w, "none", http.StatusNotFound)
		}
	})
	f := newFetcher(t, httptool.FetchOptions{Allow: []string{"127.0.0.1"}})
	if spec := f.Spec(); spec.Name != "http_get" || spec.Effect != holdfast.EffectPure {
		t.Error(spec)
	}
	for path, want := range map[string]string{
		"/page":   "A & B\n\nHeading\n\n1 < 2 and 3 < 4\nnext\n\none\ntwo\n\nend ©",
		"/hidden": "x > y\n\na > b\n\nc\nd<p>e", "/json?a={b}": `{"a": "<p>"}`,
		"/to": `{"a": "<p>"}`,
		"/file": strings.TrimPrefix(s.URL, "http://") +
			" answered 302 Found. It points to file:///etc/passwd, which was not followed.\nFound.",
		"/none": strings.TrimPrefix(s.URL, "http://") + " answered 404 Not Found.\nnone",
	} {
		result, err := fetch(t, f, s.URL+path)
		if err != nil || result.Text != want || result.Failed != (path == "/none" || path == "/file") {
			t.Errorf("%s: %q, %v, want\n%q", path, result.Text, err, want)
		}
	}
	for _, url := range []string{s.URL + "/inside", s.URL + "/metadata", "http://[::1]/", "http://localhost:1/",
		"http://0x7f000001/"} {
		if result, err := fetch(t, f, url); !strings.HasPrefix(public(err),
			"http_address_refused: Nothing was sent") && !strings.HasPrefix(public(err), "http_address_refused: The "+
			"request was redirected, and not sent on") && !strings.HasPrefix(public(err), "http_unreachable") {
			t.Errorf("%s: %+v, %v", url, result, err)
		}
	}
	for _, url := range []string{"", "/page", "file:///etc/passwd", "http:127.0.0.1", "http:///x",
		"http://u:p@example.com/", `http://example.com\@127.0.0.1/`, "http://example.com/ x", "http://bücher.example/",
		"gopher://x/"} {
		if _, err := fetch(t, f, url); !errors.Is(err, holdfast.ErrArguments) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// FuzzPages: whatever a page is made of, reading it ends and gives text.
func FuzzPages(f *testing.F) {
	for _, seed := range []string{"<p>a</p>", "<script>", "<!--", "<", "a<b>c", "<TITLE>x</title>", "&lt;script&gt;",
		"</", "<title>"} {
		f.Add(seed)
	}
	tool, err := httptool.Fetch(httptool.FetchOptions{RoundTripper: func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK,
				Header:     http.Header{"Content-Type": {"text/html"}},
				Body:       io.NopCloser(strings.NewReader(r.URL.Query().Get("page"))),
				Request:    r,
			}, nil
		})
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		q := r.URL.Query()
		q.Set("page", page)
		r.URL.RawQuery = q.Encode()
		result, err := fetch(t, tool, r.URL.String())
		if err != nil || len(result.Text) > 3*len(page)+200 {
			t.Errorf("%q: %q, %v", page, result.Text, err)
		}
	})
}
