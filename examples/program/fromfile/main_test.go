package main

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
)

// TestFile: the file's agent has the middleware of this program, and a mistake in its
// options is reported with its place.
func TestFile(t *testing.T) {
	agents, _, err := server.ValidateAgents("holdfast.yaml", parts)
	if err != nil || len(agents) != 1 || agents[0].Middleware[0].Name != "acme.audit" {
		t.Fatalf("%v, %v", agents, err)
	}
	if _, err := auditKind.New([]byte(`{}`)); err == nil || !strings.Contains(err.Error(), "tools is empty") {
		t.Error(err)
	}
	h := agenttest.New(t, agenttest.Config{
		Model: agenttest.Say(agenttest.Call("refund", `{"order":"A-1"}`), agenttest.Text("done")),
		Tools: []holdfast.Tool{refund}, Middleware: agents[0].Middleware,
	})
	if r := h.Run("refund A-1"); len(r.Started) != 1 {
		t.Errorf("started %v", r.Started)
	}
}

func TestCommands(t *testing.T) {
	if err := command(t.Context(), "kinds"); err != nil {
		t.Error(err)
	}
	if err := command(t.Context(), "sing"); err == nil {
		t.Error("there is no such command")
	}
	file, err := os.ReadFile("holdfast.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("holdfast.yaml", file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := command(t.Context(), "check"); err == nil {
		t.Error("there is no store yet")
	}
	db, err := offline.Open(offline.Location{URL: "data", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command(t.Context(), "check"); err != nil {
		t.Error(err)
	}
}
