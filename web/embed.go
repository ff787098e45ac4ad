//go:build !noweb

// Package web is Studio, the page that the server shows at /: people watch and steer runs with
// it. It loads nothing from other hosts. src has the sources, dist what is embedded, as "make
// web" builds it. With the build tag noweb there is no page.
package web

// The handler: serves the embedded files, compressed once, with strong ETags.

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// policy lets the page load from and connect to its own server only, and lets nobody frame it.
// There are no inline scripts or styles, so none are allowed. Only the sanitiser turns text
// into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src " +
	"'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types dompurify"

// kinds are the media types of the embedded files. The standard library would take them
// from the machine's configuration, and machines differ.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is one file, in the two forms in which it is sent.
type asset struct {
	kind          string
	plain, packed []byte
	// tag is the hash of the content, without quotes.
	tag string
}

// Handler returns a handler that serves the page at / and its files below /ui/, with the
// path as the browser sent it; 404 for everything else, 405 for methods other than GET and
// HEAD. Files have stable names and are revalidated by a strong ETag, so that browsers see
// a new version at the next load. They are compressed once, here.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err == nil {
		var assets map[string]*asset
		if assets, err = load(files); err == nil {
			return handler(assets)
		}
	}
	// The files are compiled in, so this is a mistake in the build.
	panic(fmt.Sprintf("web: %v", err))
}

// load reads every file; the keys are the paths at which they are served.
func load(files fs.FS) (map[string]*asset, error) {
	assets := map[string]*asset{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		kind, known := kinds[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s is of a kind that is not served", name)
		}
		packed, err := pack(content)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		at := "/" + name
		if name == "index.html" {
			at = "/"
		}
		assets[at] = &asset{kind: kind, plain: content, packed: packed, tag: hex.EncodeToString(sum[:12])}
		return nil
	})
	return assets, err
}

func pack(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

type handler map[string]*asset

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	a, found := h[r.URL.Path]
	if !found && r.URL.Path != framePath {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "Only GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	if !found {
		serveFrame(w, r)
		return
	}
	a.send(w, r)
}

func (a *asset) send(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-cache")
	header.Add("Vary", "Accept-Encoding")
	body, tag := a.plain, a.tag
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		// A strong tag identifies bytes, so each form has its own (RFC 9110, 8.8.3.3).
		body, tag = a.packed, a.tag+"-gz"
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("ETag", `"`+tag+`"`)
	if matches(r.Header.Values("If-None-Match"), tag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", a.kind)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		// An error means that the client went away, and nobody can be told.
		_, _ = w.Write(body)
	}
}

// takesGzip reports whether Accept-Encoding has gzip or *, and not with q=0.
func takesGzip(values []string) bool {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		name = strings.TrimSpace(name)
		if !strings.EqualFold(name, "gzip") && name != "*" {
			continue
		}
		q, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !found || (err == nil && weight > 0)
	}
	return false
}

// matches reports whether If-None-Match has the tag; it compares weakly (RFC 9110, 13.1.2).
func matches(values []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if part == "*" || part == `"`+tag+`"` {
			return true
		}
	}
	return false
}
