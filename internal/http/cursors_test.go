package http

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// cursorRoutes are the routes that take a cursor, with a body for those that need one.
var cursorRoutes = map[string]string{
	"GET /threads/t/runs/r/events":       "",
	"GET /threads/t/stream":              "",
	"POST /runs":                         minimal,
	"POST /agents/helper/runs":           minimal,
	"POST /copilotkit/agent/default/run": minimal,
	"POST /copilotkit/agent/x/connect":   minimal,
	"POST /copilotkit":                   `{"method":"agent/connect","params":{"agentId":"x"},"body":` + minimal + `}`,
	"POST /copilotkit#run":               `{"method":"agent/run","params":{"agentId":"x"},"body":` + minimal + `}`,
}

// TestCursorsOnEveryRoute: a cursor reaches the engine by header and by query, what is none is
// refused before anything happens, and a client that has everything gets a 204.
func TestCursorsOnEveryRoute(t *testing.T) {
	var got store.Cursor
	calls := 0
	f := &fake{
		events: func(after store.Cursor, _ agui.Dialect) (*agui.Reply, error) {
			got, calls = after, calls+1
			return nil, nil
		},
		post: func(_ context.Context, _ holdfast.Principal, _ string, in *agui.RunAgentInput) (*agui.Reply, error) {
			got, calls = store.Cursor(in.After), calls+1
			return nil, nil
		},
	}
	s := serve(t, f, nil)
	for route, body := range cursorRoutes {
		method, path, _ := strings.Cut(route, " ")
		path, _, _ = strings.Cut(path, "#")
		ask := func(query string, headers ...string) (*http.Response, string) {
			return do(t, method, s.URL+path+query, body, append(headers, "Content-Type", "application/json")...)
		}
		for _, asked := range []func() (*http.Response, string){
			func() (*http.Response, string) { return ask("", "Last-Event-ID", "12-x7k2ab") },
			func() (*http.Response, string) { return ask("?after=12-x7k2ab") },
			func() (*http.Response, string) { return ask("?after=7-b", "Last-Event-ID", "12-x7k2ab") },
		} {
			got = store.Cursor{}
			if res, text := asked(); res.StatusCode != http.StatusNoContent || got.String() != "12-x7k2ab" {
				t.Errorf("%s: %d %s, cursor %q", route, res.StatusCode, text, got)
			}
		}
		before := calls
		for _, garbage := range []string{
			"soon", "12", "12-", "-x", "0-x7k2ab", "012-x7k2ab", "+1-x7k2ab", "-1-x7k2ab", "1.0-x7k2ab",
			"18446744073709551616-x7k2ab",
			"12-x7\r\nk2", "12-x7\nid: 1", "12-\x00", "12-ü", "12-" + strings.Repeat("a", 5000), "12-x7k2ab,13-x7k2ab",
			" ",
		} {
			wantInvalidCursor(t, garbage, func() (*http.Response, string) {
				return ask("?after=" + url.QueryEscape(garbage))
			})
			if !strings.ContainsAny(garbage, "\r\n\x00") && strings.TrimSpace(garbage) != "" {
				wantInvalidCursor(t, garbage, func() (*http.Response, string) {
					return ask("", "Last-Event-ID", garbage)
				})
			}
		}
		wantInvalidCursor(t, "two", func() (*http.Response, string) { return ask("?after=12-x7k2ab&after=13-x7k2ab") })
		if res, text := ask("", "Holdfast-Cursors", "everywhere"); res.StatusCode != http.StatusBadRequest ||
			!strings.Contains(text, codes.InvalidInput) || !strings.Contains(text, `\"metadata\"`) {
			t.Errorf("%s: %d %s", route, res.StatusCode, text)
		}
		if calls != before {
			t.Errorf("%s: what was refused reached the engine", route)
		}
	}
}

func wantInvalidCursor(t *testing.T, cursor string, ask func() (*http.Response, string)) {
	t.Helper()
	res, text := ask()
	var body struct {
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || res.StatusCode != http.StatusBadRequest ||
		body.Error.Code != codes.InvalidCursor || body.Error.Hint == "" {
		t.Errorf("%.40q: %d %s", cursor, res.StatusCode, text)
	}
	if len(text) > 500 {
		t.Errorf("%.40q is repeated: %s", cursor, text)
	}
}

// TestCursorsInEvents: a client that asks for cursors in the events gets them, on every route
// and in both dialects, and nobody else does.
func TestCursorsInEvents(t *testing.T) {
	frames := []agui.Frame{
		{Data: agui.Append(nil, agui.RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: agui.ProtocolVersion})},
		{ID: "12-x7k2ab", Data: agui.Append(nil, agui.RunFinished{ThreadID: "t", RunID: "r"})},
	}
	reply := func() *agui.Reply {
		return &agui.Reply{
			ThreadID: "t",
			RunID:    "r",
			Frames:   func(yield func([]agui.Frame, error) bool) { yield(frames, nil) },
		}
	}
	f := &fake{
		events: func(store.Cursor, agui.Dialect) (*agui.Reply, error) { return reply(), nil },
		post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
			return reply(), nil
		},
	}
	s := serve(t, f, nil)
	for route, body := range cursorRoutes {
		method, path, _ := strings.Cut(route, " ")
		path, _, _ = strings.Cut(path, "#")
		_, plain := do(t, method, s.URL+path, body, "Content-Type", "application/json", "Last-Event-ID", "1-a")
		_, marked := do(t, method, s.URL+path, body, "Content-Type", "application/json", "Last-Event-ID", "1-a",
			"Holdfast-Cursors", "metadata")
		want := strings.Replace(plain, `"RUN_FINISHED","threadId":"t","runId":"r"`,
			`"RUN_FINISHED","threadId":"t","runId":"r","metadata":{"holdfast":{"cursor":"12-x7k2ab"}}`, 1)
		if marked != want || marked == plain || !strings.Contains(plain, "id: 12-x7k2ab\n") {
			t.Errorf("%s:\n%s\nwant\n%s", route, marked, want)
		}
	}
}
