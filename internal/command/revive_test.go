package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestRevivable: only a server to try out, from which nothing is lost, may be killed.
func TestRevivable(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--config=" + path
	}
	demo := file("demo.yaml", "agents: [{name: a}, {name: b, model: demo}]\n")
	charging := file("charging.yaml", "agents: [{name: a, tools: [charge_card]}]\n")
	other := file("other.yaml", "agents: [{name: a, model: demo}, {name: b, model: openai/x}]\n")
	wrong := file("wrong.yaml", "agents: [{nam: a}]\n")
	for _, c := range []struct {
		args []string
		env  map[string]string
		want bool
	}{
		{nil, nil, true},
		{[]string{"--addr=127.0.0.1:8081"}, nil, true},
		{[]string{"--addr=[::1]:8081"}, nil, true},
		{[]string{"--store=redis://localhost:6379/0"}, nil, true},
		{[]string{demo}, nil, true},
		{[]string{charging, "--demo-journal=j"}, nil, true},
		{[]string{charging}, nil, false},
		{[]string{other}, nil, false},
		{[]string{wrong}, nil, false},
		{[]string{"--config=" + filepath.Join(dir, "nosuch.yaml")}, nil, false},
		{[]string{demo, "--model=openai/x"}, nil, false},
		{[]string{"--model=demo,openai/x"}, nil, false},
		{nil, map[string]string{"OPENAI_API_KEY": "sk"}, false},
		{nil, map[string]string{"HOLDFAST_API_KEYS": "@keys"}, false},
		{nil, map[string]string{"HOLDFAST_DEMO_KILL": "false"}, false},
		{[]string{"--demo-kill=false"}, nil, false},
		{[]string{"--jwks=https://id.example.com/keys"}, nil, false},
		{[]string{"--allow-anonymous"}, nil, false},
		{[]string{"--behind-proxy"}, nil, false},
		{[]string{"--store=memory:"}, nil, false},
		{[]string{"--addr=0.0.0.0:8080"}, nil, false},
		{[]string{"--addr=:8080"}, nil, false},
		{[]string{"--addr=localhost:0"}, nil, false},
		{[]string{"--addr=localhost"}, nil, false},
		{[]string{"--addr=agents.example.com:8080"}, nil, false},
		{[]string{"--version"}, nil, false},
		{[]string{"--nosuch"}, nil, false},
		{[]string{"check"}, nil, false},
		{nil, map[string]string{parentVariable: strconv.Itoa(os.Getppid())}, false}, // it is the server
		{nil, map[string]string{parentVariable: "1" + strconv.Itoa(os.Getppid())}, true},
	} {
		if got := needsReviver(c.args, env(c.env)); got != c.want {
			t.Errorf("%v, %v: %v", c.args, c.env, got)
		}
	}
}

// TestKillNeedsParent: a server can be killed only if somebody starts it again.
func TestKillNeedsParent(t *testing.T) {
	for value, want := range map[string]bool{"": false, "1": os.Getppid() == 1, strconv.Itoa(os.Getppid()): true} {
		o, err := parseOptions(nil, env(map[string]string{parentVariable: value}))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.kill() != nil; got != want {
			t.Errorf("with the parent %q: %v", value, got)
		}
	}
}

// TestWithParent: one signal shuts the server down, a second one or the parent's death ends it.
func TestWithParent(t *testing.T) {
	for name, c := range map[string]struct {
		told string
		done bool
	}{"the parent dies": {"", false}, "one signal": {"s", true}, "two signals": {"ss", true}} {
		t.Run(name, func(t *testing.T) {
			code := make(chan int)
			ctx := withParent(t.Context(), bytes.NewBufferString(c.told), func(n int) { code <- n })
			if got := <-code; got != exitFailed {
				t.Errorf("exit code %d", got)
			}
			if done := ctx.Err() != nil; done != c.done {
				t.Errorf("the server shuts down: %v", done)
			}
		})
	}
}
