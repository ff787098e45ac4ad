package http

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// localOnly guards a server without keys. A request must name this machine as its
// Host, or a web page could reach the server by a DNS name of its own (DNS rebinding);
// and a page's Origin must be this machine. It reports whether the request may
// continue; if not, it has been answered.
func (h *handler) localOnly(w http.ResponseWriter, r *http.Request) bool {
	if !h.LoopbackOnly {
		return true
	}
	if !isLoopback(r.Host) {
		h.fail(w, r, holdfast.Errorf(codes.ForbiddenHost, "This server has no API keys, so it answers only as localhost.").
			WithHint("Use http://localhost with its port. To serve other hosts, configure API keys."))
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" && !h.mayUse(origin) {
		h.fail(w, r, holdfast.Errorf(codes.ForbiddenOrigin, "This server has no API keys, so only pages from localhost may use it.").
			WithHint("Serve the page from http://localhost, or add its origin to the allowed ones."))
		return false
	}
	return true
}

func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Host)
}
