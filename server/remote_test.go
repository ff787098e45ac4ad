package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// remoteFile writes an agents file whose agent has these keys.
func remoteFile(t *testing.T, keys string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(file, []byte("agents:\n  - name: far\n"+keys), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRemoteInTheFile: an agent of the file may run elsewhere, is sent the shared state, and has its own
// name in metrics.
func TestRemoteInTheFile(t *testing.T) {
	file := remoteFile(t, "    remote: {url: \"http://${HOST}/agent\", headers: {X-Team: a}, "+
		"history: new, onCut: fail,\n"+
		"      effects: {search: pure}, timeout: 1m, credential: {env: TOKEN}}\n")
	env := map[string]string{"HOST": "localhost:8000", "TOKEN": "secret"}
	loaded, err := server.Load(file, server.Parts{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	a := loaded.Agents[0]
	named, ok := a.Model.(interface{ ModelName() (string, string) })
	if !ok {
		t.Fatalf("the model is a %T", a.Model)
	}
	if provider, name := named.ModelName(); provider != "remote" || name != "far" {
		t.Errorf("the model is %s/%s", provider, name)
	}
	if a.State == nil || a.State.Show != "all" {
		t.Errorf("of the shared state it is shown %+v", a.State)
	}
}

// TestRemoteMistakes: what is wrong with such an agent is said at its place, without the environment.
func TestRemoteMistakes(t *testing.T) {
	for keys, want := range map[string]string{
		"    remote: {}\n":                          "3:13: remote has no url; add url:",
		"    remote: {url: \"http://host/?a=1\"}\n": "3:19: url: the agent's address must have only",
		"    remote: {url: nowhere}\n": "3:19: url: the agent's address is " +
			"missing or not absolute",
		"    remote: {url: \"http://host\", onCut: stop}\n":                 "onCut",
		"    remote: {url: \"http://host\", effects: {pay: twice}}\n":       "effects",
		"    remote: {url: \"http://host\"}\n    model: demo\n":             "4:5: remote and model are both set",
		"    remote: {url: \"http://example.com\", credential: {env: T}}\n": "unencrypted",
	} {
		_, _, err := server.ValidateAgents(remoteFile(t, keys), server.Parts{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v\nwant %s", keys, err, want)
		}
	}
}
