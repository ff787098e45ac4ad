// Package model has what the clients of all providers are given: which model is asked, and
// how. The clients are in the packages below it, each with its provider's API.
package model

import (
	"net/http"
	"time"
)

// Options say which model of a provider is asked, and how. Only Model is required. The
// package of each provider says what its API makes of them.
type Options struct {
	// Model is the provider's name of the model.
	Model string
	// BaseURL is what comes before the path of a request; the default is the environment
	// variable that the provider's own tools read, or else the provider's address. It may be
	// plain http, for servers on the same machine or network.
	BaseURL string
	// Key is sent in the header that the API wants. The default is the variable named by
	// KeyEnv.
	Key string
	// KeyEnv is the name of the environment variable with the key; default the one that the
	// provider's own tools read. A variable that is named here must be set. The default may
	// be unset if there is a BaseURL or a header with a key, since many servers need none.
	KeyEnv string
	// Getenv reads the environment; default os.Getenv.
	Getenv func(string) string
	// Params are further members of each request: whatever the provider knows and the
	// server does not set itself.
	Params map[string]any
	// Headers are further headers of each request, which some gateways require. They take
	// precedence over those from the other options; like the key, their values are kept out
	// of the log.
	Headers map[string]string
	// Proxy is the URL of the proxy for the requests, or "direct" for none; the default is
	// that of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
	Proxy string
	// Timeout is how long the provider may send nothing, before its answer and within it;
	// default 5 minutes.
	Timeout time.Duration
	// HTTP makes the requests; the default is a client with its own connections. It must
	// not have an overall timeout, because an answer may take any length of time. Redirects
	// are not followed unless it has a CheckRedirect.
	HTTP *http.Client
	// Now is the clock for Retry-After dates; default time.Now.
	Now func() time.Time
}
