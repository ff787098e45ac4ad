package door

import (
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Cross-origin requests: the CORS headers that browsers ask for, and who gets them.

// resourcePolicy keeps browsers from loading a response into a page of another origin,
// where it could not be read but its size and time could be seen (Fetch standard, CORP).
const resourcePolicy = "Cross-Origin-Resource-Policy"

// CORS sets what lets allowed pages read the response, also one that refuses the request. It
// reports whether the page is allowed. A request from any other page is served without: the
// page may be of the same origin behind a proxy, and browsers keep the response from all
// others.
func (d *Door) CORS(header http.Header, r *http.Request) (allowed bool) {
	if !d.Origins.any {
		header.Add("Vary", "Origin")
	}
	header.Set(resourcePolicy, "same-origin")
	origin := r.Header.Get("Origin")
	return origin != "" && d.allow(header, origin)
}

// Preflight answers preflights before authentication, because browsers send them without
// credentials. It reports whether there is anything left to answer; the error is for a page
// that is not allowed.
func (d *Door) Preflight(w http.ResponseWriter, r *http.Request, allowed bool) (goOn bool, err error) {
	switch {
	case r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "":
		return true, nil
	case !allowed:
		return false, holdfast.Errorf(codes.ForbiddenOrigin, "Pages of this origin may not use this server.").
			WithHint("An operator can add it to the allowed origins.")
	default:
		header := w.Header()
		header.Add("Vary", "Access-Control-Request-Headers")
		header.Set("Access-Control-Allow-Methods", d.Methods)
		header.Set("Access-Control-Allow-Headers", allowedHeaders+applicationHeaders(r))
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return false, nil
	}
}

// allow sets the headers that let a page read the response, if it may.
func (d *Door) allow(header http.Header, origin string) bool {
	switch {
	case d.Origins.names(origin):
		if d.Origins.credentials {
			header.Set("Access-Control-Allow-Credentials", "true")
		}
		header.Set("Access-Control-Allow-Origin", origin)
	case d.LoopbackOnly && isLocalOrigin(origin):
		header.Set("Access-Control-Allow-Origin", origin)
	case d.Origins.any && !d.LoopbackOnly && !d.Anonymous:
		header.Set("Access-Control-Allow-Origin", "*")
	default:
		return false
	}
	header.Set(resourcePolicy, "cross-origin")
	header.Set("Access-Control-Expose-Headers", "Retry-After, ETag, Holdfast-Run, Holdfast-Side-Run, Holdfast-Owner")
	return true
}

// allowedHeaders are the headers of this API that a page may send.
const allowedHeaders = "Content-Type, Accept, Authorization, Last-Event-ID, If-Match, Holdfast-Cursors, " +
	"Holdfast-Resume, Holdfast-Thread, Holdfast-User, Traceparent"

// applicationHeaders returns the X-… headers that a preflight asks for, to be added to the
// allowed ones: frontends such as CopilotKit send those that their application sets. A page
// that may use the server may send them, because none of them means anything here. Those
// of proxies are not an application's.
func applicationHeaders(r *http.Request) string {
	var list strings.Builder
	for _, line := range r.Header.Values("Access-Control-Request-Headers") {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if strings.HasPrefix(name, "x-") && !strings.HasPrefix(name, "x-forwarded-") &&
				!strings.ContainsFunc(name, notInHeaderName) {
				list.WriteString(", " + name)
			}
		}
	}
	return list.String()
}

// notInHeaderName reports whether a character cannot be in the name of a header that
// applications choose: letters, digits and hyphens, of RFC 9110's tokens.
func notInHeaderName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}
