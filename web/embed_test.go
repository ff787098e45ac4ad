package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast/web"
)

// page is the handler. To make it compresses all files.
var page = sync.OnceValue(web.Handler)

func get(t *testing.T, method, target string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	page().ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// files returns the served files, by path.
func files(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{}
	for _, e := range entries {
		at := "/ui/" + e.Name()
		if e.Name() == "index.html" {
			at = "/"
		}
		r := get(t, http.MethodGet, at, nil)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", at, r.StatusCode)
		}
		served[at] = text(t, r)
	}
	return served
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/", "/ui/app.js", "/ui/none.js"} {
		h := get(t, http.MethodGet, target, nil).Header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy %q has no %q", target, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", target, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", target, h)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/ui/app.js": "text/javascript; charset=utf-8",
		"/ui/app.css": "text/css; charset=utf-8", "/ui/favicon.svg": "image/svg+xml",
	} {
		if got := get(t, http.MethodGet, target, nil).Header.Get("Content-Type"); got != want {
			t.Errorf("%s is %q, want %q", target, got, want)
		}
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/index.html", "/ui/", "/ui/index.html", "/ui/../embed.go", "/ui/none.js", "/threads"} {
		if r := get(t, http.MethodGet, target, nil); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", target, r.StatusCode)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		r := get(t, method, "/", nil)
		if r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, r.StatusCode, r.Header)
		}
	}
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	t.Parallel()
	got, want := get(t, http.MethodHead, "/ui/app.css", nil), get(t, http.MethodGet, "/ui/app.css", nil)
	if b := text(t, got); b != "" {
		t.Errorf("HEAD has a body of %d bytes", len(b))
	}
	for _, name := range []string{"Content-Length", "Content-Type", "ETag", "Cache-Control"} {
		if got.Header.Get(name) != want.Header.Get(name) || got.Header.Get(name) == "" {
			t.Errorf("%s: %q, GET has %q", name, got.Header.Get(name), want.Header.Get(name))
		}
	}
}

func TestGzipIsTheSameFile(t *testing.T) {
	t.Parallel()
	plain := text(t, get(t, http.MethodGet, "/ui/app.js", nil))
	r := get(t, http.MethodGet, "/ui/app.js", http.Header{"Accept-Encoding": {"br, gzip;q=0.5"}})
	if r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("headers %v", r.Header)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil || string(b) != plain {
		t.Errorf("the compressed file is another one (%v)", err)
	}
	for _, accept := range []string{"", "br", "gzip;q=0", "gzip; q=0.0", "identity"} {
		r := get(t, http.MethodGet, "/ui/app.js", http.Header{"Accept-Encoding": {accept}})
		if r.Header.Get("Content-Encoding") != "" || text(t, r) != plain {
			t.Errorf("Accept-Encoding %q was answered with %q", accept, r.Header.Get("Content-Encoding"))
		}
	}
}

func TestRevalidation(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{"", "gzip"} {
		first := get(t, http.MethodGet, "/", http.Header{"Accept-Encoding": {accept}})
		tag := first.Header.Get("ETag")
		if !strings.HasPrefix(tag, `"`) || first.Header.Get("Cache-Control") != "no-cache" {
			t.Fatalf("headers %v", first.Header)
		}
		for _, match := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			r := get(t, http.MethodGet, "/", http.Header{"Accept-Encoding": {accept}, "If-None-Match": {match}})
			if r.StatusCode != http.StatusNotModified || text(t, r) != "" || r.Header.Get("ETag") != tag {
				t.Errorf("If-None-Match %s: %d", match, r.StatusCode)
			}
		}
		if r := get(t, http.MethodGet, "/", http.Header{"Accept-Encoding": {accept}, "If-None-Match": {`"old"`}}); r.StatusCode != http.StatusOK {
			t.Errorf("an old tag: %d", r.StatusCode)
		}
	}
	a, b := get(t, http.MethodGet, "/ui/app.js", nil), get(t, http.MethodGet, "/ui/app.css", nil)
	if a.Header.Get("ETag") == b.Header.Get("ETag") {
		t.Error("two files have one tag")
	}
}

var (
	otherHost = regexp.MustCompile(`(?:https?:)?//[a-z0-9-]+\.[a-z]|@import|url\(`)
	reference = regexp.MustCompile(`(?:src|href)="([^"#]+)"|from '([^']+)'`)
	inline    = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*)>[^<]`)
	unsafe    = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`)
)

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	served := files(t)
	for at, content := range served {
		content = strings.ReplaceAll(content, `xmlns="http://www.w3.org/2000/svg"`, "") // a name, not an address
		if m := otherHost.FindString(content); m != "" {
			t.Errorf("%s refers to another host: %s", at, m)
		}
		if m := unsafe.FindString(content); m != "" {
			t.Errorf("%s makes markup or code of text: %s", at, m)
		}
		for _, m := range reference.FindAllStringSubmatch(content, -1) {
			target := path.Join(path.Dir(at), m[1]+m[2])
			if _, there := served[target]; !there {
				t.Errorf("%s refers to %s, which is not there", at, target)
			}
		}
	}
	if m := inline.FindString(served["/"]); m != "" {
		t.Errorf("the policy forbids what is inline: %s", m)
	}
}

func TestThePageIsSmall(t *testing.T) {
	t.Parallel()
	const most = 79 << 10
	total := 0
	for at, content := range files(t) {
		if at != "/" {
			total += len(content)
		}
	}
	if total > most {
		t.Errorf("scripts and styles are %d bytes, more than %d", total, most)
	}
}

// node runs a script; it skips the test if there is no Node.js, unless that is required.
func node(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		if os.Getenv("HOLDFAST_REQUIRE_ALL") == "1" {
			t.Fatal("node is missing, and HOLDFAST_REQUIRE_ALL=1")
		}
		t.Skip("no Node.js here: scripts/install-test-deps.sh installs it")
	}
	if out, err := exec.CommandContext(t.Context(), "node", args...).CombinedOutput(); err != nil {
		t.Errorf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestDistIsWhatSrcGives(t *testing.T) {
	t.Parallel()
	node(t, "build.mjs", "--check")
}

func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("test/*.test.mjs")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	node(t, append([]string{"--test"}, scripts...)...)
}
