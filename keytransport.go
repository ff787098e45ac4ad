package holdfast

import (
	"net/http"
	"net/url"
)

// KeyTransport is a transport for a tool's HTTP client: a request made with the
// call's context carries the call's key as its Idempotency-Key. A service that knows
// the header does the work only once, even if the call runs again after a crash.
//
// It is meant for tools that make a single request with an effect. A tool that makes
// several sets the header of each itself, for example the key followed by a number;
// a header that is already set is left alone.
type KeyTransport struct {
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// HeaderIdempotencyKey is the header's name, from the IETF draft
// draft-ietf-httpapi-idempotency-key-header.
const HeaderIdempotencyKey = "Idempotency-Key"

// RoundTrip implements [http.RoundTripper].
func (t KeyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if key := CallFrom(r.Context()).Key; key != "" && r.Header.Get(HeaderIdempotencyKey) == "" {
		r = r.Clone(r.Context()) // a RoundTripper must not change its request
		// Clients choose thread and run ids, which may hold what a header must not.
		r.Header.Set(HeaderIdempotencyKey, (&url.URL{Path: key}).EscapedPath())
	}
	return base.RoundTrip(r)
}
