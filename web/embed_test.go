//go:build !noweb

package web_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	served := map[string]string{}
	dist := os.DirFS("dist")
	err := fs.WalkDir(dist, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		at := "/" + name
		if name == "index.html" {
			at = "/"
		}
		r := get(t, http.MethodGet, at, nil)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", at, r.StatusCode)
		}
		served[at] = text(t, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return served
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/", "/ui/app.js", "/ui/none.js"} {
		h := get(t, http.MethodGet, target, nil).Header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'",
			"connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
			"require-trusted-types-for 'script'"} {
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
	for _, target := range []string{"/index.html", "/ui/", "/ui/index.html", "/ui/../embed.go", "/ui/none.js",
		"/threads"} {
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
		if r := get(t, http.MethodGet, "/",
			http.Header{"Accept-Encoding": {accept}, "If-None-Match": {`"old"`}}); r.StatusCode != http.StatusOK {
			t.Errorf("an old tag: %d", r.StatusCode)
		}
	}
	a, b := get(t, http.MethodGet, "/ui/app.js", nil), get(t, http.MethodGet, "/ui/app.css", nil)
	if a.Header.Get("ETag") == b.Header.Get("ETag") {
		t.Error("two files have one tag")
	}
}

var (
	elsewhere = regexp.MustCompile(`@import|url\(["']?(?:https?:)?//`)
	named     = regexp.MustCompile(`\s(?:src|href)="(\.[^"#]+)"`)
	imported  = regexp.MustCompile(`\b(?:from|import) ?["'` + "`" + `](\.[^"'` + "`" + `]+)["'` + "`" + `]`)
	later     = regexp.MustCompile(`\bimport\(["'` + "`" + `](\.[^"'` + "`" + `]+)["'` + "`" + `]\)`)
	inline    = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*)>[^<]`)
	unsafe    = regexp.MustCompile(`dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|` +
		`document\.write|\beval\(|new Function`)
)

// references returns the paths of what a file names, by the expression.
func references(at, content string, by *regexp.Regexp) []string {
	var found []string
	if at != "/" && path.Ext(at) != ".js" {
		return nil
	}
	for _, m := range by.FindAllStringSubmatch(content, -1) {
		found = append(found, path.Join(path.Dir(at), m[1]))
	}
	return found
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	served := files(t)
	for at, content := range served {
		if m := elsewhere.FindString(content); m != "" && path.Ext(at) != ".js" {
			t.Errorf("%s loads from another host: %s", at, m)
		}
		for _, target := range slices.Concat(references(at, content, named), references(at, content, imported),
			references(at, content, later)) {
			if _, there := served[target]; !there {
				t.Errorf("%s refers to %s, which is not there", at, target)
			}
		}
	}
	if m := inline.FindString(served["/"]); m != "" {
		t.Errorf("the policy forbids what is inline: %s", m)
	}
}

// TestNoTextBecomesMarkup: our own code leaves that to the library that is trusted with it.
func TestNoTextBecomesMarkup(t *testing.T) {
	t.Parallel()
	read := 0
	err := fs.WalkDir(os.DirFS("src"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(name, ".test.") {
			return err
		}
		content, err := os.ReadFile(filepath.Join("src", name))
		read++
		if m := unsafe.FindString(string(content)); m != "" {
			t.Errorf("src/%s: %s", name, m)
		}
		return err
	})
	if err != nil || read == 0 {
		t.Fatalf("%d files: %v", read, err)
	}
}

// TestTheInitialLoadIsSmall: the page, and what it loads before it shows anything.
func TestTheInitialLoadIsSmall(t *testing.T) {
	t.Parallel()
	const most = 260_000
	served := files(t)
	seen := map[string]bool{}
	total := 0
	for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		r := get(t, http.MethodGet, at, http.Header{"Accept-Encoding": {"gzip"}})
		total += len(text(t, r))
		queue = append(queue, references(at, served[at], named)...)
		queue = append(queue, references(at, served[at], imported)...)
	}
	if total > most {
		t.Errorf("the initial load is %d bytes, compressed, more than %d", total, most)
	}
	if !seen["/ui/app.js"] || !seen["/ui/app.css"] {
		t.Errorf("the page loads only %v", seen)
	}
	for _, at := range []string{"/ui/inspector.js", "/ui/operate.js"} {
		if _, there := served[at]; !there || seen[at] {
			t.Errorf("%s is not there, or is loaded before it is needed", at)
		}
	}
	t.Logf("%d bytes", total)
}

// node runs a script; it skips the test if there is no Node.js or no packages, unless they
// are required.
func node(t *testing.T, args ...string) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat("node_modules")
	}
	if err != nil {
		if os.Getenv("HOLDFAST_REQUIRE_ALL") == "1" {
			t.Fatalf("%v, and HOLDFAST_REQUIRE_ALL=1", err)
		}
		t.Skip("no Node.js or no packages here: scripts/install-test-deps.sh installs them")
	}
	if out, err := exec.CommandContext(t.Context(), "node", args...).CombinedOutput(); err != nil {
		t.Errorf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestDistIsWhatSrcGives(t *testing.T) {
	t.Parallel()
	node(t, "verify.mjs")
}

// TestTypes: the sources are right by their types.
func TestTypes(t *testing.T) {
	t.Parallel()
	node(t, "node_modules/typescript/bin/tsc", "-p", ".")
}

func TestScripts(t *testing.T) {
	t.Parallel()
	node(t, "node_modules/vitest/vitest.mjs", "run")
}
