package http

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
)

// TestEveryRouteSaysWhatItNeeds: either it is open, or it has an action, or it asks itself.
func TestEveryRouteSaysWhatItNeeds(t *testing.T) {
	for _, r := range allRoutes() {
		said := 0
		for _, is := range []bool{r.open, r.action != "", r.asks} {
			if is {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%s %s: open %t, action %q, asks %t", r.method, r.path, r.open, r.action, r.asks)
		}
	}
}

// TestRefusedBeforeTheRoute: a caller who may not do what a route is for gets no further, not
// even if the request could not be understood.
func TestRefusedBeforeTheRoute(t *testing.T) {
	var asked []access.Action
	f := &fake{}
	url := serve(t, f, func(c *Config) {
		c.Authorize = func(_ context.Context, who holdfast.Principal, do access.Action, agent string) error {
			if asked = append(asked, do); who.User != "alice" || agent != "" {
				t.Errorf("asked about %v and agent %q", who, agent)
			}
			return holdfast.Errorf(codes.Forbidden, "No.")
		}
	}).URL
	for _, r := range allRoutes() {
		if r.action == "" {
			continue
		}
		asked = nil
		path := strings.NewReplacer("{", "", "}", "").Replace(r.path)
		res, _ := do(t, r.method, url+path, map[bool]string{true: "nonsense"}[r.method == http.MethodPost],
			"Content-Type", typeJSON)
		if res.StatusCode != http.StatusForbidden || !slices.Equal(asked, []access.Action{r.action}) {
			t.Errorf("%s %s: %d, asked %q, want %q", r.method, r.path, res.StatusCode, asked, r.action)
		}
	}
	if f.asked != "" {
		t.Errorf("thread %s was read", f.asked)
	}
}
