package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/origins"
	"github.com/holdfast-agents/holdfast/mcp"
)

// appTools are tools with an interface: one for models too, one only for interfaces, and one only for models.
const appTools = `{"name":"show","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://srv/page"}}},
{"name":"refresh","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}},
{"name":"pay","inputSchema":{"type":"object"},"_meta":{"ui/resourceUri":"ui://srv/old","ui":{"visibility":["model"]}}},
{"name":"embed","inputSchema":{"type":"object"}}`

// appServer is a server with interfaces.
func appServer(t *testing.T, network []string) (*fake, *mcp.Server) {
	f := newFake(t, appTools, func(w http.ResponseWriter, m message) {
		var p struct{ Name, URI string }
		raw, _ := json.Marshal(m.Params)
		_ = json.Unmarshal(raw, &p)
		const page = `{"uri":"ui://srv/page","mimeType":"text/html;profile=mcp-app",` +
			`"text":"<p>hi</p>","_meta":{"ui":{` +
			`"prefersBorder":true,"csp":{"connectDomains":["https://a.example","https://b.example","javascript:x"],` +
			`"resourceDomains":["https://cdn.b.example","https://*.c.example; script-src *"]}}}}`
		switch {
		case m.Method == "resources/read" && p.URI == "ui://srv/page":
			m.result(w, `{"resultType":"complete","contents":[`+page+`]}`)
		case m.Method == "resources/read":
			m.result(w, `{"resultType":"complete","contents":[{"uri":"`+p.URI+`","mimeType":"text/html","text":"x"}]}`)
		case p.Name == "embed":
			m.result(w, `{"resultType":"complete","content":[{"type":"text","text":"see"},`+
				`{"type":"resource","resource":`+page+`}]}`)
		default:
			m.result(w, `{"resultType":"complete","content":[{"type":"text","text":"21 degrees"}],`+
				`"structuredContent":{"t":21},"_meta":{"at":"noon"}}`)
		}
	})
	return f, open(t, mcp.Options{URL: f.URL, Apps: &mcp.Apps{Network: network}})
}

// shows calls a tool, and returns its result and what is shown of it.
func shows(t *testing.T, s *mcp.Server, name string) (holdfast.ToolResult, []activity.Change) {
	t.Helper()
	var shown []activity.Change
	ctx, _ := agenttest.Context(t)
	ctx = activity.ContextWith(ctx, &activity.Run{Show: func(_ context.Context, c activity.Change) error {
		shown = append(shown, c)
		return nil
	}})
	r, err := call(t, ctx, tool(t, s, name),
		holdfast.ToolCall{ID: "c1", Key: "k", Arguments: json.RawMessage(`{"in":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return r, shown
}

// TestApps: what a call of a tool with an interface has brought is shown as an activity; tools that are only for
// interfaces are none of the models'; and the server is told that interfaces are shown.
func TestApps(t *testing.T) {
	t.Parallel()
	f, s := appServer(t, nil)
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Spec().Name)
	}
	if !slices.Equal(names, []string{"srv_embed", "srv_pay", "srv_show"}) {
		t.Errorf("models get %q", names)
	}
	for name, want := range map[string]bool{"show": true, "refresh": true, "pay": false, "embed": true, "none": false} {
		if tool, there := s.AppTool(name); there != want || there && tool.ForModels() != (name != "refresh") {
			t.Errorf("interfaces may call %s: %t", name, there)
		}
	}
	r, shown := shows(t, s, "srv_show")
	if len(shown) != 1 || shown[0].Type != activity.TypeApp || r.Parts[0].Text != "21 degrees" {
		t.Fatalf("%+v, %+v", r, shown)
	}
	var got struct {
		Result                          json.RawMessage
		ResourceURI, ServerID, ToolName string
		ServerHash                      string
		ToolInput                       struct{ In string }
	}
	if err := json.Unmarshal(shown[0].Content, &got); err != nil || got.ServerHash == "" ||
		got.ResourceURI != "ui://srv/page" || got.ServerID != "srv" || got.ToolName != "show" ||
		got.ToolInput.In != "x" || string(got.Result) != `{"content":[{"type":"text","text":"21 `+
		`degrees"}],"structuredContent":{"t":21},"_meta":{"at":"noon"}}` {
		t.Errorf("%v: %s", err, shown[0].Content)
	}
	if r, shown := shows(t, s, "srv_embed"); len(shown) != 1 || strings.Contains(fmt.Sprint(r), "<p>") {
		t.Errorf("%+v, %+v", r, shown)
	} else if app, err := s.AppIn(t.Context(), shown[0].Content); err != nil || app.HTML != "<p>hi</p>" {
		t.Errorf("%+v, %v", app, err)
	}
	told := string(f.got("tools/list")[0].Params["_meta"])
	if !strings.Contains(told, `"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}`) {
		t.Errorf("the server is told %s", told)
	}
}

// TestAppIn: the page of an interface is read from its server, and reaches what it asks for and the options allow.
func TestAppIn(t *testing.T) {
	t.Parallel()
	for want, network := range map[string][]string{
		`["https://a.example","https://b.example"] ["https://cdn.b.example"]`: nil,
		`[] []`:                        {},
		`["https://b.example"] []`:     {"https://B.example"},
		`[] ["https://cdn.b.example"]`: {"https://*.b.example"},
		`["https://a.example"] []`:     {"https://a.example", "wss://b.example"},
	} {
		_, s := appServer(t, network)
		_, shown := shows(t, s, "srv_show")
		app, err := s.AppIn(t.Context(), shown[0].Content)
		if err != nil {
			t.Fatal(err)
		}
		connect, _ := json.Marshal(app.CSP.ConnectDomains)
		resource, _ := json.Marshal(app.CSP.ResourceDomains)
		if got := string(connect) + " " + string(resource); got != want || app.HTML != "<p>hi</p>" ||
			!*app.PrefersBorder {
			t.Errorf("with %q it reaches %s, want %s", network, got, want)
		}
	}
	_, s := appServer(t, nil)
	many := `["https://a.example"` + strings.Repeat(`,"https://b.example"`, origins.Most) + `]`
	resource := `{"uri":"ui://x","mimeType":"text/html;profile=mcp-app","text":"x","_meta":{"ui":{"csp":{` +
		`"connectDomains":` + many + `,"frameDomains":` + many + `}}}}`
	app, err := s.AppIn(t.Context(), json.RawMessage(`{"resource":{"type":"resource","resource":`+resource+`}}`))
	if err != nil || len(app.CSP.ConnectDomains) != origins.Most || len(app.CSP.FrameDomains) > 0 {
		t.Errorf("%+v, %v: it reaches more than a frame may", app, err)
	}
	for _, content := range []string{``, `{}`, `{"resourceUri":"https://srv/page"}`, `{"resourceUri":"ui://srv/other"}`,
		`{"resource":{"type":"resource","resource":{"uri":"ui://x","mimeType":"text/html","text":"x"}}}`} {
		if app, err := s.AppIn(t.Context(), json.RawMessage(content)); err == nil {
			t.Errorf("%s is the interface %+v", content, app)
		}
	}
	o := mcp.Options{Name: "a", URL: "https://x.example", Apps: &mcp.Apps{Network: []string{"a.example"}}}
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "is no origin") {
		t.Errorf("%v", err)
	}
}

// TestRawResult: a result as an interface gets it.
func TestRawResult(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]holdfast.ToolResult{
		`{"content":[{"text":"no","type":"text"}],"isError":true}`:                     {Text: "no", Failed: true},
		`{"content":[{"text":"{\"a\":1}","type":"text"}],"structuredContent":{"a":1}}`: {Text: `{"a":1}`},
		`{"content":[{"data":"AA==","mimeType":"image/png","type":"image"}]}`: {Parts: []holdfast.Part{{
			Type:   holdfast.PartImage,
			Source: &holdfast.Source{Type: holdfast.SourceData, Value: "AA==", MIMEType: "image/png"},
		}}},
	} {
		if got := string(mcp.RawResult(r)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
