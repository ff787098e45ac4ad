// Package idempotency passes the key of a tool's call on to HTTP services.
package idempotency

import (
	"net/http"
	"net/url"

	"github.com/holdfast-agents/holdfast"
)

// Transport is a transport for a tool's HTTP client: a request made with the
// call's context carries the call's key as its Idempotency-Key. A service that knows
// the header does the work only once, even if the call runs again after a crash.
//
// It is meant for tools that make a single request with an effect. A tool that makes
// several sets the header of each itself, for example the key followed by a number;
// a value that is already set is left alone.
//
// Not every service knows the header, so a request that may have arrived is not sent
// again. [http.Transport] does that by itself if the connection breaks and the request's
// Header has an entry with the name in canonical form. Base therefore gets the entry in
// lower case, idempotency-key, which is the same header to a server.
type Transport struct {
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// Header is the header's name, from the IETF draft
// draft-ietf-httpapi-idempotency-key-header.
const Header = "Idempotency-Key"

// headerSentOnce is the same name, which net/http does not take for leave to send a
// request again.
const headerSentOnce = "idempotency-key"

// RoundTrip implements [http.RoundTripper].
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	value := r.Header.Values(Header)
	if len(value) == 0 {
		//lint:ignore SA1008 it is meant not to be canonical, and may have been set before
		value = r.Header[headerSentOnce]
	}
	if key := holdfast.CallFrom(r.Context()).Key; key != "" && len(value) == 0 {
		// A key that the server has not made may hold what a header must not.
		value = []string{(&url.URL{Path: key}).EscapedPath()}
	}
	if len(value) > 0 {
		r = r.Clone(r.Context()) // a RoundTripper must not change its request
		r.Header.Del(Header)
		r.Header[headerSentOnce] = value
	}
	return base.RoundTrip(r)
}
