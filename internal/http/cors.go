package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Cross-origin requests: the CORS headers that browsers ask for, and who gets them.

// mayUse reports whether a page of the origin may use a server without keys.
func (h *handler) mayUse(origin string) bool {
	return isLocalOrigin(origin) || h.AllowedOrigins.names(origin)
}

// resourcePolicy keeps browsers from loading a response into a page of another origin,
// where it could not be read but its size and time could be seen (Fetch standard, CORP).
const resourcePolicy = "Cross-Origin-Resource-Policy"

// cors answers preflights before authentication, because browsers send them without
// credentials, and lets allowed pages read the responses. A request from any other
// page is served without CORS headers: the page may be of the same origin behind a
// proxy, and browsers keep the response from all others.
func (h *handler) cors(w http.ResponseWriter, r *http.Request) (goOn bool) {
	origin := r.Header.Get("Origin")
	header := w.Header()
	if !h.AllowedOrigins.any {
		header.Add("Vary", "Origin")
	}
	header.Set(resourcePolicy, "same-origin")
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	allowed := origin != "" && h.allow(header, origin)
	switch {
	case !preflight:
		return true
	case !allowed:
		h.fail(w, r, holdfast.Errorf(codes.ForbiddenOrigin, "Pages of this origin may not use this server.").
			WithHint("An operator can add it to the allowed origins."))
	default:
		header.Set("Access-Control-Allow-Methods", h.methods)
		header.Set("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization, Last-Event-ID, If-Match, Holdfast-Resume")
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	}
	return false
}

// allow sets the headers that let a page read the response, if it may.
func (h *handler) allow(header http.Header, origin string) bool {
	switch {
	case h.AllowedOrigins.names(origin):
		if h.AllowedOrigins.credentials {
			header.Set("Access-Control-Allow-Credentials", "true")
		}
		header.Set("Access-Control-Allow-Origin", origin)
	case h.LoopbackOnly && isLocalOrigin(origin):
		header.Set("Access-Control-Allow-Origin", origin)
	case h.AllowedOrigins.any:
		header.Set("Access-Control-Allow-Origin", "*")
	default:
		return false
	}
	header.Set(resourcePolicy, "cross-origin")
	header.Set("Access-Control-Expose-Headers", "Retry-After, ETag, Holdfast-Run")
	return true
}
