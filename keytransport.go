package holdfast

import (
	"net/http"
	"net/url"
)

// KeyTransport is a transport for the HTTP client of a tool: a request that is made
// with the call's context carries the call's key as Idempotency-Key. A service that
// knows the header does the same work only once, also when the call is run again
// after a crash.
//
// It is for tools that make one request with an effect. A tool that makes several
// gives each a header of its own, such as the key with a number; a header that is
// set is left alone.
type KeyTransport struct {
	// Base sends the requests; nil is http.DefaultTransport.
	Base http.RoundTripper
}

// HeaderIdempotencyKey is the header's name, after the IETF draft
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
		// Thread and run ids are the client's: they may hold what a header may not.
		r.Header.Set(HeaderIdempotencyKey, (&url.URL{Path: key}).EscapedPath())
	}
	return base.RoundTrip(r)
}
