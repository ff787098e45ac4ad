package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// looked is the result of madeStore's tool.
const looked = "sunny\x1b[2J\nand warm"

// madeStore makes a store with the thread "t", in which an agent has called a tool.
func madeStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "It is sunny.", Finish: holdfast.FinishStop}, nil)
				return
			}
			yield(
				holdfast.Delta{
					Text:   "Let me look.",
					Call:   &holdfast.CallDelta{ID: "c1", Name: "look", Arguments: `{"where":"here"}`},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	look := holdfast.NewTool("look", "looks", func(context.Context, struct {
		Where string `json:"where"`
	}) (string, error) {
		return looked, nil
	})
	s, err := server.New(server.Config{
		Store: "file:" + path, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Agents: []holdfast.Agent{{Name: "weather", Model: model, Tools: []holdfast.Tool{look}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked(t, s, "t", "What is the weather?")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path
}

// asked posts a message and waits for the end of the run.
func asked(t *testing.T, s *server.Server, thread, text string) {
	t.Helper()
	body := fmt.Sprintf(`{"threadId":%q,"runId":"r1","protocolVersion":"1.0","messages":[{"id":"u1",`+
		`"role":"user","content":%q}]}`, thread, text)
	req := httptest.NewRequest("POST", "http://localhost/runs", strings.NewReader(body))
	req.RemoteAddr = "127.0.0.1:1"
	req.Header.Set("Content-Type", "application/json")
	res := httptest.NewRecorder()
	s.Handler().ServeHTTP(res, req)
	if got, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(got), "RUN_FINISHED") {
		t.Fatalf("%d %s, %v", res.Code, got, err)
	}
}

// masked replaces what differs in every run: ids, and numbers of bytes that depend on
// them.
func masked(text string) string {
	text = regexp.MustCompile(`\b([a-z]+)_[0-9a-z]{12,}`).ReplaceAllString(text, "${1}_*")
	text = regexp.MustCompile(`(?m)^(  [a-z]+ +)\d+$`).ReplaceAllString(text, "${1}N")
	return regexp.MustCompile(` \d{3,7} +`).ReplaceAllString(text, " N ")
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestInspectCommand(t *testing.T) {
	path := madeStore(t)
	code, out, errOut := runCommand(t, env(nil), "inspect", path)
	if code != exitOK || errOut != "" {
		t.Fatalf("%d %s", code, errOut)
	}
	golden(t, "inspect_list.txt", masked(out))
	code, out, errOut = runCommand(t, env(nil), "inspect", "file:"+path, "--thread", "t")
	if code != exitOK || errOut != "" || strings.Contains(out, "\x1b") {
		t.Fatalf("%d %q %s", code, out, errOut)
	}
	golden(t, "inspect_thread.txt", masked(out))
	// The environment may name the store, and flags may come first.
	code, out, errOut = runCommand(t, env(map[string]string{"HOLDFAST_STORE": path}), "inspect", "--thread=t",
		"--checkpoint=000000000001")
	if code != exitOK || errOut != "" {
		t.Fatalf("%d %s", code, errOut)
	}
	golden(t, "inspect_checkpoint.txt", masked(out))
}

func TestCheckCommand(t *testing.T) {
	path := madeStore(t)
	for _, args := range [][]string{{"check", path}, {"check", "--thread", "t", path}} {
		if code, out, errOut := runCommand(t, env(nil), args...); code != exitOK ||
			out != "1 thread checked, 0 problems\n" || errOut != "" {
			t.Errorf("%q: %d %q %q", args, code, out, errOut)
		}
	}
	damage(t, path)
	code, out, errOut := runCommand(t, env(nil), "check", path)
	want := "default/t: checkpoint_missing: the newest checkpoint 000000000003 is not there\n1 " +
		"thread checked, 1 problem\n"
	if code != exitFailed || out != want || errOut != "" {
		t.Errorf("damaged: %d %q %q", code, out, errOut)
	}
	code, out, _ = runCommand(t, env(nil), "inspect", path, "--thread=t")
	if code != exitOK || !strings.Contains(out, "problems\n  checkpoint_missing: ") {
		t.Errorf("damaged, inspected: %d %q", code, out)
	}
}

// damage removes the thread's newest checkpoint.
func damage(t *testing.T, path string) {
	t.Helper()
	db, err := offline.Open(offline.Location{URL: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	key := store.ThreadKey{Tenant: server.LocalPrincipal().Tenant, Thread: "t"}
	head, err := db.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Commit(t.Context(), &store.Commit{
		Key: key, ID: "damage", Expect: head.Position(), User: head.User, Fence: head.Fence, UpdatedAt: head.UpdatedAt,
		Delete: []store.ValueID{{Kind: store.KindCheckpoint, ID: "000000000003"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStoreCommandMistakes: a mistake exits with 2, says what to do, and makes no file.
func TestStoreCommandMistakes(t *testing.T) {
	path := madeStore(t)
	missing := filepath.Join(t.TempDir(), "nothing")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"it takes STORE, not 0 arguments", []string{"check"}},
		{"it takes STORE, not 2 arguments", []string{"inspect", path, "more"}},
		{"not defined: -colour", []string{"check", path, "--colour"}},
		{"there is no store at " + missing, []string{"check", missing}},
		{"there is no store at " + missing, []string{"inspect", "file:" + missing}},
		{"exists only inside its server", []string{"check", "memory:"}},
		{"unknown store", []string{"check", "floppy://secret@a"}},
		{"default/nope", []string{"check", path, "--thread=nope"}},
		{"other/t", []string{"check", path, "--tenant=other", "--thread=t"}},
		{"--checkpoint needs --thread", []string{"inspect", path, "--checkpoint=1"}},
		{`There is no checkpoint "1"`, []string{"inspect", path, "--thread=t", "--checkpoint=1"}},
	} {
		code, out, errOut := runCommand(t, env(nil), c.args...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, c.want) || strings.Contains(errOut, "secret") {
			t.Errorf("%q: %d %q %q", c.args, code, out, errOut)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("looking for a store made one")
	}
	held, err := offline.Open(offline.Location{URL: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if code, _, errOut := runCommand(t, env(nil), "check", path); code != exitUsage ||
		!strings.Contains(errOut, store.ErrStoreLocked.Error()) {
		t.Errorf("a store that is in use: %d %q", code, errOut)
	}
}

// TestHelpCommand: help names every command.
func TestHelpCommand(t *testing.T) {
	code, out, errOut := runCommand(t, env(nil), "help")
	if code != exitOK || errOut != "" {
		t.Fatalf("%d %q", code, errOut)
	}
	names := []string{"validate", "key", "healthcheck"}
	for name := range storeCommands {
		names = append(names, name)
	}
	for _, name := range names {
		if !strings.Contains(out, "holdfast "+name+" ") {
			t.Errorf("help does not name %s", name)
		}
	}
}
