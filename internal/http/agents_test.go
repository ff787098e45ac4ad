package http

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
)

type agentList []agentcard.Info

func (l agentList) Agents() []agentcard.Info { return l }

var twoAgents = agentList{
	{
		Name:          "helper",
		Description:   "Helps.",
		ParallelTools: 16,
		MaxIterations: 50,
		Persistent:    true,
		Middleware:    []string{"acme.audit", "holdfast.budget"},
		Models:        []string{"openai/gpt-x", "anthropic/claude-x"},
		Tools: []holdfast.ToolSpec{
			{
				Name:        "pay",
				Description: "Pays.",
				Effect:      holdfast.EffectOnce,
				Parameters:  json.RawMessage(`{"type":"object"}`),
			},
			{Name: "look", Description: "Looks."},
		},
	},
	{Name: "bare"},
	{
		Name:   "painter",
		Formed: true,
		Takes: map[holdfast.PartType]bool{
			holdfast.PartImage:    true,
			holdfast.PartDocument: true,
			holdfast.PartVideo:    false,
		},
		Makes: map[holdfast.PartType]bool{holdfast.PartImage: true},
	},
}

func TestAgents(t *testing.T) {
	s := serve(t, &fake{}, func(c *Config) { c.Agents = twoAgents })
	res, body := do(t, "GET", s.URL+"/agents", "")
	var got struct{ Agents []agentcard.Shown }
	if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 || len(got.Agents) != 3 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	helper, bare := got.Agents[0], got.Agents[1]
	if helper.Name != "helper" || !helper.Default || bare.Default {
		t.Errorf("the first is the default: %+v", got.Agents)
	}
	if helper.Tools[0].Effect != holdfast.EffectOnce || helper.Tools[1].Effect != holdfast.EffectIdempotent {
		t.Errorf("effects: %+v", helper.Tools)
	}
	if !slices.Equal(helper.Middleware, []string{"acme.audit", "holdfast.budget"}) || bare.Middleware == nil ||
		len(bare.Middleware) != 0 {
		t.Errorf("middleware: %q and %q", helper.Middleware, bare.Middleware)
	}
	if !slices.Equal(helper.Models, []string{"openai/gpt-x", "anthropic/claude-x"}) || bare.Models == nil {
		t.Errorf("models: %q and %q", helper.Models, bare.Models)
	}
	if strings.Contains(body, "null") {
		t.Errorf("clients of AG-UI 1.0 do not expect null: %s", body)
	}
	c := helper.Capabilities
	if !c.Tools.ParallelCalls || c.Execution.MaxIterations != 50 || !c.State.PersistentState ||
		string(c.Tools.Items[0].Parameters) != `{"type":"object"}` {
		t.Errorf("helper: %+v", c)
	}
	if c = bare.Capabilities; c.Tools.ParallelCalls || c.Execution != nil || c.State.PersistentState ||
		len(c.Tools.Items) != 0 {
		t.Errorf("what is not configured is claimed: %+v", c)
	}
}

func TestCapabilities(t *testing.T) {
	s := serve(t, &fake{}, func(c *Config) { c.Agents, c.Version = twoAgents, "1.2.3" })
	res, body := do(t, "GET", s.URL+"/agents/helper/capabilities", "")
	var c agentcard.Capabilities
	if err := json.Unmarshal([]byte(body), &c); err != nil || res.StatusCode != 200 || c.Identity.Name != "helper" ||
		c.Identity.Version != "1.2.3" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if strings.Contains(body, "multimodal") || strings.Contains(body, "structuredOutput") {
		t.Errorf("what is not known is declared: %s", body)
	}
	_, body = do(t, "GET", s.URL+"/agents/painter/capabilities", "")
	for _, want := range []string{`"output":{"structuredOutput":true,"supportedMimeTypes":["application/json"]}`,
		`"multimodal":{"input":{"image":true,"video":false,"pdf":true},"output":{"image":true}}`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
	res, body = do(t, "GET", s.URL+"/agents/nobody/capabilities", "")
	if res.StatusCode != 404 || !strings.Contains(body, codes.AgentNotFound) || !strings.Contains(body, "GET /agents") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}
