package main

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/server"
)

// TestPlan: the answer is a value, also if the model needs a second try; after that it is
// an error.
func TestPlan(t *testing.T) {
	const good, bad = `{"city":"Rome","days":3,"see":["the Forum"]}`, `{"city":"Rome"}`
	for name, c := range map[string]struct {
		says []agenttest.Turn
		want string
	}{
		"once":  {[]agenttest.Turn{agenttest.Text(good)}, ""},
		"twice": {[]agenttest.Turn{agenttest.Text(bad), agenttest.Text("```json\n" + good + "\n```")}, ""},
		"never": {[]agenttest.Turn{agenttest.Text(bad), agenttest.Text(bad)}, "output_invalid"},
	} {
		s, err := server.New(server.Config{Store: "memory:",
			Agents: []holdfast.Agent{planner(agenttest.Say(c.says...))}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.StartEngine(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := plan(t.Context(), s, "somewhere warm")
		if c.want == "" && (err != nil || got.City != "Rome" || got.Days != 3) ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := run(t.Context(), agenttest.Say(agenttest.Text(good)), "somewhere warm"); err != nil {
		t.Error(err)
	}
}
