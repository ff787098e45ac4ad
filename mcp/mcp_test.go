package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// bodyOf reads a request's body, and leaves it to be read again.
func bodyOf(r *http.Request) string {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(strings.NewReader(string(data)))
	return string(data)
}

// everywhere runs a test with a server over each transport.
func everywhere(t *testing.T, f func(t *testing.T, o mcp.Options)) {
	for name, options := range map[string]func() mcp.Options{
		"process":   func() mcp.Options { return process(t, "plain") },
		"stateless": func() mcp.Options { return mcp.Options{URL: serveWeb(t, newServer(), true).URL} },
		"session":   func() mcp.Options { return mcp.Options{URL: serveWeb(t, newServer(), false).URL} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, options())
		})
	}
}

// TestTools: a server's tools are sorted, named for it, and have the effects that its
// annotations or the options say, with the reason.
func TestTools(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o mcp.Options) {
		o.Effects = map[string]holdfast.Effect{"meta": holdfast.EffectPure}
		o.ExceptTools = []string{"d*", "wa*", "freeze"}
		s := open(t, o)
		var got []string
		for _, tool := range s.Tools() {
			got = append(got, fmt.Sprintf("%s %s: %s", tool.Spec().Name, tool.Spec().Effect, tool.(*mcp.Tool).Why()))
		}
		want := []string{
			"srv_echo pure: the server says that it only reads (readOnlyHint)",
			"srv_meta pure: the configuration says so for this tool",
			"srv_set idempotent: the server says that calling it again changes nothing more (idempotentHint)",
			"srv_steps once: the server does not say that it can be called again",
			"srv_wrong once: the server does not say that it can be called again",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestCall: arguments and results pass as they are, with exact numbers, and the call's key
// and trace go along.
func TestCall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o mcp.Options) {
		s := open(t, o)
		r, err := do(t, s, "srv_echo", `{"n":9007199254740993,"s":"<&>"}`)
		var got struct {
			N json.Number
			S string
		}
		if json.Unmarshal([]byte(r.Text), &got) != nil || got.N != "9007199254740993" || got.S != "<&>" || r.Failed ||
			err != nil {
			t.Errorf("got %+v, %v", r, err)
		}
		r, err = do(t, s, "srv_meta", ``)
		for _, want := range []string{`"io.github.holdfast-agents/key":"key1"`,
			`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `"progressToken"`} {
			if !strings.Contains(r.Text, want) || err != nil {
				t.Errorf("%s is not in %s, %v", want, r.Text, err)
			}
		}
		if r, err = do(t, s, "srv_wrong", `{}`); !r.Failed || r.Text != "this cannot be done" || err != nil {
			t.Errorf("a failed call: %+v, %v", r, err)
		}
		if r, err = do(t, s, "srv_echo", `[1]`); !errors.Is(err, holdfast.ErrArguments) {
			t.Errorf("arguments that are no object: %+v, %v", r, err)
		}
	})
}

// TestProgress: news of a call is shown.
func TestProgress(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o mcp.Options) {
		s := open(t, o)
		ctx, recorded := agenttest.Context(t)
		if r, err := call(t, ctx, tool(t, s, "srv_steps"), holdfast.ToolCall{}); r.Text != "done" || err != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		notices := recorded.Notices()
		if len(notices) == 0 || notices[0].Name != "mcp.progress" ||
			!strings.Contains(string(notices[0].Value), `"message":"step"`) {
			t.Errorf("the notices are %v", notices)
		}
	})
}

// TestListChanges: the list follows the server's.
func TestListChanges(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{true, false} {
		t.Run(fmt.Sprint(stateless), func(t *testing.T) {
			server := newServer()
			s := open(t, mcp.Options{URL: serveWeb(t, server, stateless).URL})
			before := s.Tools()
			server.AddTool(&sdk.Tool{Name: "added", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					return text("new"), nil
				})
			wait.Until(t, "the new tool is listed", func() bool { return len(s.Tools()) == len(before)+1 })
			if r, err := do(t, s, "srv_added", `{}`); r.Text != "new" || err != nil {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}
