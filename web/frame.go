//go:build !noweb

package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/origins"
)

// The frame in which Studio shows the interface of a tool (MCP Apps). It is a document of an opaque origin, with a
// policy of its own: what the interface may reach is in the address, as the server has told Studio. Its only
// content is a script that takes the interface's page from Studio and puts it in its own place; a policy that came
// with a document stays. So the address holds nothing that is secret, and somebody who makes another one gets
// an empty page that nobody can frame but Studio.

// framePath is where the frame is.
const framePath = "/ui/app-frame"

// framePage takes the page, once.
const framePage = `<!doctype html><meta charset="utf-8"><title>An interface of a tool</title><script>
addEventListener('message', function take(event) {
  const message = event.data;
  if (event.source !== parent || message?.method !== 'ui/notifications/sandbox-resource-ready') return;
  removeEventListener('message', take);
  document.open();
  document.write(message.params.html);
  document.close();
});
parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*');
</script>
`

// framePolicy returns the policy of a frame that may reach what the address says; false if that is no origin.
func framePolicy(of url.Values) (policy string, valid bool) {
	lists := map[string]string{}
	n := 0
	for _, name := range []string{"connect", "resource", "frame", "base"} {
		for _, o := range of[name] {
			if n++; n > origins.Most || !origins.Valid(o) {
				return "", false
			}
		}
		lists[name] = strings.Join(of[name], " ")
	}
	sources := func(directive, always, name string) string {
		all := strings.TrimSpace(always + " " + lists[name])
		if all == "" {
			all = "'none'"
		}
		return directive + " " + all
	}
	return strings.Join([]string{
		"default-src 'none'",
		sources("script-src", "'unsafe-inline'", "resource"),
		sources("style-src", "'unsafe-inline'", "resource"),
		sources("img-src", "data: blob:", "resource"),
		sources("font-src", "data:", "resource"),
		sources("media-src", "data: blob:", "resource"),
		sources("connect-src", "", "connect"),
		sources("frame-src", "", "frame"),
		sources("base-uri", "", "base"),
		"object-src 'none'",
		"form-action 'none'",
		"frame-ancestors 'self'",
		"sandbox allow-scripts",
	}, "; "), true
}

// serveFrame sends the frame.
func serveFrame(w http.ResponseWriter, r *http.Request) {
	allowed, err := url.ParseQuery(r.URL.RawQuery)
	policy, valid := framePolicy(allowed)
	if err != nil || !valid {
		http.Error(w, "The address names no origins.", http.StatusBadRequest)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=()")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", kinds[".html"])
	if r.Method == http.MethodGet {
		// An error means that the client went away, and nobody can be told.
		_, _ = w.Write([]byte(framePage))
	}
}
