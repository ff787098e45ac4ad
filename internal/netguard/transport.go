package netguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Transport is an [http.RoundTripper] whose requests go only where its guard allows it,
// redirects included. It may be used concurrently.
type Transport struct {
	guard           *Guard
	direct, proxied *http.Transport
}

// Transport returns a transport that dials by the guard. Limits, TLS and whatever else is
// set are those of base, which is copied; nil means the usual ones. Its ways to dial and
// its proxy are replaced by the guard's.
func (g *Guard) Transport(base *http.Transport) *Transport {
	if base == nil {
		base = &http.Transport{
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          100,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
		}
	}
	t := &Transport{guard: g, direct: base.Clone()}
	t.direct.Proxy, t.direct.DialContext, t.direct.DialTLSContext = nil, g.DialContext, nil
	//lint:ignore SA1019 it would be a way around the guard
	t.direct.DialTLS = nil
	if g.proxy != nil {
		t.proxied = t.direct.Clone()
		t.proxied.Proxy, t.proxied.DialContext = g.proxy, g.dial // only the proxy is dialed
	}
	return t
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.guard.proxy == nil {
		return t.direct.RoundTrip(r)
	}
	proxy, err := t.guard.proxy(r)
	if err != nil {
		closeBody(r)
		return nil, fmt.Errorf("find the proxy: %w", err)
	}
	if proxy == nil {
		return t.direct.RoundTrip(r)
	}
	if err := t.guard.checkProxied(r.Context(), r); err != nil {
		closeBody(r)
		return nil, err
	}
	return t.proxied.RoundTrip(r)
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	if t.proxied != nil {
		t.proxied.CloseIdleConnections()
	}
}

// closeBody closes a request's body, as a RoundTripper must.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// checkProxied decides about a request before the proxy gets it. Behind a proxy many
// networks resolve only their own names, so a name that does not resolve is left to the
// proxy, unless it is one that only a private network has.
func (g *Guard) checkProxied(ctx context.Context, r *http.Request) error {
	host, port := r.URL.Hostname(), r.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[r.URL.Scheme]
	}
	_, err := g.Check(ctx, host, port)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*Refused)), ctx.Err() != nil:
		return err
	case isLocalName(host) && !g.listed(host, port):
		return &Refused{Host: host, Port: port}
	}
	return nil
}
