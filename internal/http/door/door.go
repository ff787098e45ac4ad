// Package door checks a request before anybody asks who sent it: by which name it addresses
// the server, which site it comes from, and what a browser lets its page read.
package door

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/netguard"
)

// The checks before authentication. They protect a server without keys, which every
// browser that can reach it could use on behalf of any page: the Host header must name the
// server (or a page could reach it by a DNS name of its own, DNS rebinding), and a request
// of another site must not change anything. A body must call itself JSON on every server,
// because a page of another site can send all other kinds without asking first.

// Door decides who may come as far as authentication, and which pages may read responses.
type Door struct {
	// LoopbackOnly refuses requests whose Host or Origin is not this machine, so that
	// no web page from elsewhere can use a server without keys. Origins that are listed are
	// still allowed, but "*" does not count.
	LoopbackOnly bool
	// BehindProxy lets a server with LoopbackOnly serve what a proxy has forwarded.
	BehindProxy bool
	// Anonymous: everyone may call without a key, by one of Hosts. Pages of other sites
	// may not change anything unless Origins lists them; "*" does not count.
	Anonymous bool
	// Hosts are the names by which clients may address the server, besides the loopback
	// names if LoopbackOnly is set. Without them a server that is neither LoopbackOnly nor
	// Anonymous answers to all names.
	Hosts Hosts
	// Origins are the other origins whose pages may use this server; see [ParseOrigins].
	Origins Origins
	// Methods are those that a preflight allows.
	Methods string
}

// Check returns why a request may not go on to authentication, if it may not.
func (d *Door) Check(r *http.Request) error {
	err := d.checkHost(r)
	if err == nil && d.LoopbackOnly {
		err = d.checkLocal(r)
	}
	if err == nil && d.Anonymous {
		err = d.checkSite(r)
	}
	if err == nil {
		err = checkContentType(r)
	}
	return err
}

// monitored are the routes that monitors ask, by whatever name they know the machine.
// They change nothing and show no thread.
func monitored(r *http.Request) bool {
	return slices.Contains([]string{"/healthz", "/readyz", "/metrics"}, r.URL.Path)
}

func (d *Door) checkHost(r *http.Request) error {
	switch {
	case d.LoopbackOnly:
		if netguard.IsLoopback(r.Host) || d.Hosts.name(r.Host) {
			return nil
		}
		return holdfast.Errorf(codes.ForbiddenHost, "This server has no API keys, so it answers only as localhost.").
			WithHint("Use http://localhost with its port. To serve other hosts, configure API keys.")
	case monitored(r) || !d.Anonymous && !d.Hosts.set() || d.Hosts.name(r.Host):
		return nil
	}
	return holdfast.Errorf(codes.ForbiddenHost, "This server does not answer to the host name of this request.").
		WithHint("An operator can list the name in --hosts (HOLDFAST_HOSTS).")
}

// checkLocal guards a server that serves its own machine: pages from elsewhere may not
// use it, and neither may others through a proxy, whose requests look local.
func (d *Door) checkLocal(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !d.mayUse(origin) {
		return holdfast.Errorf(codes.ForbiddenOrigin,
			"This server has no API keys, so only pages from localhost may use it.").
			WithHint("Serve the page from http://localhost, or add its origin to the allowed ones.")
	}
	if fromOtherSite(r) {
		return errOtherSite()
	}
	if d.BehindProxy {
		return nil
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host"} {
		if len(r.Header.Values(name)) > 0 {
			return holdfast.Errorf(codes.Forbidden,
				"This server has no API keys and serves its own machine only, but a proxy has forwarded this request.").
				WithHint("Configure API keys. If everybody whom the proxy lets in may see every thread, an operator "+
					"can set --behind-proxy (HOLDFAST_BEHIND_PROXY=1).").
				With("header", name)
		}
	}
	return nil
}

// mayUse reports whether a page of the origin may use a server without keys.
func (d *Door) mayUse(origin string) bool {
	return isLocalOrigin(origin) || d.Origins.names(origin)
}

// checkSite guards a server that everybody may use: a page of another site must not use
// it by way of a visitor's browser.
func (d *Door) checkSite(r *http.Request) error {
	if monitored(r) {
		return nil
	}
	origin := r.Header.Get("Origin")
	listed := origin != "" && d.Origins.names(origin)
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
	if changes && origin != "" && !listed && !sameOrigin(origin, r.Host) {
		return holdfast.Errorf(codes.ForbiddenOrigin,
			"This server has no API keys, so pages of other origins may not change anything.").
			WithHint("An operator can add the origin to the allowed ones.")
	}
	if fromOtherSite(r) || changes && !listed && r.Header.Get(secFetchSite) == crossSite {
		return errOtherSite()
	}
	return nil
}

// The header by which browsers say who has caused a request (Fetch Metadata).
const (
	secFetchSite = "Sec-Fetch-Site"
	crossSite    = "cross-site"
)

// fromOtherSite reports whether a page of another site has sent a request without an
// Origin that could be checked. Following a link to the page is no such request.
func fromOtherSite(r *http.Request) bool {
	if r.Header.Get(secFetchSite) != crossSite || r.Header.Get("Origin") != "" {
		return false
	}
	toPage := r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/ui/")
	link := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
	return !toPage || !link
}

func errOtherSite() error {
	return holdfast.Errorf(codes.ForbiddenOrigin,
		"This server has no API keys, so pages of other sites may not use it.").
		WithHint("Open the address itself, or serve the page from an allowed origin.")
}

// checkContentType refuses a POST that a page of another site could send without a
// preflight. Requests without a body and without an Origin come from no page.
func checkContentType(r *http.Request) error {
	if r.Method != http.MethodPost || r.ContentLength == 0 && r.Header.Get("Origin") == "" {
		return nil
	}
	if !IsJSON(r) {
		return NotJSON()
	}
	return nil
}

// IsJSON reports whether a body calls itself JSON.
func IsJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// NotJSON is the error of a body that does not call itself JSON.
func NotJSON() error {
	return holdfast.Errorf(codes.UnsupportedMediaType, "The body must be JSON.").
		WithHint("Send Content-Type: application/json.")
}
