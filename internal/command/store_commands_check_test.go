package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
)

// aged makes a store whose threads t1 and t2 have states of the given versions, written
// by an agent that the returned file describes.
func aged(t *testing.T, versions map[string]int) (store, file string) {
	t.Helper()
	dir := t.TempDir()
	store, file = "file:"+filepath.Join(dir, "data"), filepath.Join(dir, "holdfast.yaml")
	text := "agents:\n  - name: a\n    model: demo\n    middleware:\n"
	var kinds []holdfast.MiddlewareKind
	for name, version := range versions {
		text += "      - " + name + "\n"
		kinds = append(kinds, kept(name, version))
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := server.Load(file, server.Parts{Middleware: kinds})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	s, err := server.New(server.Config{
		Store:  store,
		Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
		Agents: loaded.Agents,
		Limits: loaded.Limits,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked(t, s, "t1", "help")
	asked(t, s, "t2", "help")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, file
}

// kept is a kind of middleware that keeps a state of the same name. There are migrations
// from the given versions to the next ones.
func kept(name string, version int, migrations ...int) holdfast.MiddlewareKind {
	type visits struct {
		N int `json:"n"`
	}
	spec := state.Spec[visits]{Name: name, Version: version, Migrations: map[int]state.Migration{}}
	for _, from := range migrations {
		spec.Migrations[from] = func(old json.RawMessage) (json.RawMessage, error) { return old, nil }
	}
	key := state.Register(spec)
	return holdfast.MiddlewareKind{Name: name, New: func(json.RawMessage) (holdfast.Middleware, error) {
		return holdfast.Middleware{
			Name: name, States: []holdfast.State{key},
			AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
				if _, err := key.Update(ctx, func(v visits) visits { v.N++; return v }); err != nil {
					panic(err) // the server logs it, and the test does not find the state
				}
			},
		}, nil
	}}
}

// TestCheckStates: before a deployment, check says what would happen to the stored
// states, and exits with 1 if some could not be continued.
func TestCheckStates(t *testing.T) {
	store, file := aged(t, map[string]int{"acme.counter": 1})
	newer, newerFile := aged(t, map[string]int{"acme.counter": 4})
	for _, c := range []struct {
		name, store, file string
		kind              holdfast.MiddlewareKind
		lost              bool
		want              string
	}{
		{"the same", store, file, kept("acme.counter", 1), false, ""},
		{"migrations", store, file, kept("acme.counter", 3, 1, 2), false,
			"version 1, 3 is needed: migrated when it is next read"},
		{"a step is missing", store, file, kept("acme.counter", 3, 1), true,
			"version 1, 3 is needed: there is no migration from 2 to 3"},
		{"newer", newer, newerFile, kept("acme.counter", 2), true,
			"version 4, which is newer than this program knows (2)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			command := &storeCommand{
				getenv: env(nil),
				stdout: &out,
				stderr: t.Output(),
				parts:  server.Parts{Middleware: []holdfast.MiddlewareKind{c.kind}},
			}
			err := command.check([]string{c.store, "--config", c.file})
			want := "2 threads checked, 0 problems\n"
			if c.want != "" {
				want = fmt.Sprintf("default/t1: state acme.counter is %[1]s\ndefault/t2: state acme.counter is "+
					"%[1]s\n%[2]sstate acme.counter: 2 threads with %[1]s\n", c.want, want)
			}
			if out.String() != want || errors.Is(err, errProblems) != c.lost || err != nil && !c.lost {
				t.Errorf("got\n%swant\n%s%v", out.String(), want, err)
			}
		})
	}
	t.Run("one thread", func(t *testing.T) {
		var out bytes.Buffer
		command := &storeCommand{
			getenv: env(nil),
			stdout: &out,
			stderr: t.Output(),
			parts:  server.Parts{Middleware: []holdfast.MiddlewareKind{kept("acme.counter", 2, 1)}},
		}
		if err := command.check([]string{store, "--config", file, "--thread=t1"}); err != nil ||
			strings.Contains(out.String(), "t2") ||
			!strings.Contains(out.String(), ": 1 thread with version 1, 2 is needed") {
			t.Errorf("%s%v", out.String(), err)
		}
	})
}

// TestCheckConfig: a file that was named must exist and be valid; without one there are
// no agents to check.
func TestCheckConfig(t *testing.T) {
	store := madeStore(t)
	missing := filepath.Join(t.TempDir(), "holdfast.yaml")
	code, _, errOut := runCommand(t, env(map[string]string{"HOLDFAST_CONFIG": missing}), "check", store)
	if code != exitUsage || !strings.Contains(errOut, missing) {
		t.Errorf("no file: %d %q", code, errOut)
	}
	if err := os.WriteFile(missing, []byte("agents:\n  - name: a\n    model: openai/x\n    "+
		"middleware: [citcuitBreaker]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut = runCommand(t, env(nil), "check", store, "--config="+missing)
	if want := missing + ":4:18: unknown middleware \"citcuitBreaker\"; did you mean \"circuitBreaker\"?\n"; code !=
		exitUsage || errOut != want {
		t.Errorf("a mistake: %d %q, want %q", code, errOut, want)
	}
	if err := os.WriteFile(missing, []byte("agents:\n  - name: weather\n    model: openai/x\n    "+
		"middleware: [circuitBreaker]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := runCommand(t, env(nil), "check", store, "--config="+missing); code != exitOK ||
		out != "1 thread checked, 0 problems\n" || errOut != "" {
		t.Errorf("without keys: %d %q %q", code, out, errOut)
	}
}
