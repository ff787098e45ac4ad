package command

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/jwtauth"
	"github.com/holdfast-agents/holdfast/server"
)

// hangUp sends this process a SIGHUP.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// TestReloadOnSignal: a SIGHUP makes the program read its keys again, and the log says
// whose have changed, and no key.
func TestReloadOnSignal(t *testing.T) {
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := apikey.New(rand.Reader, "acme", "bob")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(entry + "\n")
	o, err := parseOptions(nil, env(map[string]string{"HOLDFAST_API_KEYS": "@" + file}))
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	log := slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	c, err := readCallers(o.settings.Tokens, o.getenv, log)
	if err != nil {
		t.Fatal(err)
	}
	r := newReloader(c, "", nil, log)
	defer r.stop()
	r.start(nil)
	who, err := c.keys.Authenticate(bearer(key))
	if err != nil {
		t.Fatal(err)
	}
	write("acme/alice")
	hangUp(t)
	if line := <-lines; !strings.Contains(line, "all stay as they were") || !strings.Contains(line, "not an entry") {
		t.Error(line)
	}
	if line := <-lines; !strings.Contains(line, "action=reload_keys result=failed") {
		t.Error(line)
	}
	if _, err := c.keys.Authenticate(bearer(key)); err != nil || who.Rights.Revoked.Err() != nil {
		t.Errorf("a mistake in the file revokes keys: %v", err)
	}
	write(other + "\n")
	hangUp(t)
	if line := <-lines; !strings.Contains(line, "msg=audit") ||
		!strings.Contains(line, "action=reload_keys result=ok added=[acme/bob] removed=[acme/alice] changed=[]") ||
		strings.Contains(line, "sha256") {
		t.Error(line)
	}
	if _, err := c.keys.Authenticate(bearer(key)); err == nil || who.Rights.Revoked.Err() == nil {
		t.Error("the removed key is still valid")
	}
}

// TestSignalWithoutKeys: with tokens alone there is nothing to read again. A SIGHUP, which
// operators send out of habit, does not end the program, and the log says so.
func TestSignalWithoutKeys(t *testing.T) {
	lines := make(chan string, 10)
	r := newReloader(callers{tokens: new(jwtauth.Verifier)}, "", nil,
		slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	defer r.stop()
	r.start(nil)
	hangUp(t)
	if line := <-lines; !strings.Contains(line, "no file of API keys or agents") || !strings.Contains(line, "JWKS") {
		t.Error(line)
	}
}

// TestReloadAgents: a SIGHUP makes the program read its agents file again, with the files that
// it names. Mistakes are in the log with their places, and change nothing; the audit line has
// names, and never what the file says.
func TestReloadAgents(t *testing.T) {
	dir := t.TempDir()
	file, words := filepath.Join(dir, "agents.yaml"), filepath.Join(dir, "words.md")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(words, "Be kind.")
	write(file, "agents:\n  - name: a\n    model: demo\n    instructionsFile: words.md\n  - name: b\n    model: demo\n")
	o, err := parseOptions([]string{"--config=" + file, "--store=memory:"}, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	log := slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	loaded, closeAll, err := o.load(log)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	cfg, who, err := o.config(loaded, log)
	if err != nil {
		t.Fatal(err)
	}
	r := newReloader(who, o.agentsFile, loaded, log)
	defer r.stop()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	hangUp(t) // it waits until there is a server
	r.start(s)
	reloaded := func() (said []string) {
		for {
			line := <-lines
			if said = append(said, line); strings.Contains(line, "action=reload_agents") {
				return said
			}
		}
	}
	agents := func() string {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/agents", nil))
		return w.Body.String()
	}
	for _, step := range []struct{ file, words, want string }{
		{"", "", "result=ok added=[] removed=[] changed=[] others=[]"},
		{"", "Be brief.", "result=ok added=[] removed=[] changed=[a] others=[" + words + "]"},
		{"# the same in other words\nagents: [{name: a, model: demo, instructionsFile: words.md}, " +
			"{name: b, model: 'demo'}]",
			"", "result=ok added=[] removed=[] changed=[] others=[]"},
		{"agents:\n  - name: c\n    model: demo\n    description: newest\n  - name: b\n    model: demo\n    " +
			"instructions: secret words\nlimits: { perUser: { runs: 3 } }\n",
			"",
			"result=ok added=[c] removed=[a] changed=[b] others=\"[" + words + " default limits]\""},
	} {
		if step.file != "" {
			write(file, step.file)
		}
		if step.words != "" {
			write(words, step.words)
		}
		if step.file+step.words != "" {
			hangUp(t)
		}
		said := reloaded()
		if last := said[len(said)-1]; !strings.Contains(last, step.want) || strings.Contains(last, "secret") {
			t.Errorf("want %s, got %s", step.want, last)
		}
	}
	if shown := agents(); !strings.Contains(shown, "newest") || strings.Contains(shown, `"name":"a"`) {
		t.Error(shown)
	}
	before := agents()
	write(file, "agents:\n  - name: c\n    model: nonsense\n    colour: red\n")
	hangUp(t)
	said := reloaded()
	for _, want := range []string{"agents.yaml:3:12: ", "agents.yaml:4:5: ", "all agents stay as they were"} {
		if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("the log does not say %s: %s", want, said)
		}
	}
	if last := said[len(said)-1]; !strings.Contains(last, "result=failed") {
		t.Error(last)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	if said := reloaded(); !strings.Contains(said[len(said)-1], "result=failed") ||
		!strings.Contains(said[0], "no such file") {
		t.Error(said)
	}
	if agents() != before {
		t.Errorf("after mistakes there are %s", agents())
	}
}

// TestReloadOnThePage: the line that docs/operations.md shows is what the log says.
func TestReloadOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := &reloader{log: slog.New(slog.NewTextHandler(&log, nil))}
	r.changed(server.Changes{Added: []string{"translator"}, Changed: []string{"support"}, Others: []string{"prices"}})
	if _, line, _ := strings.Cut(log.String(), " "); !strings.Contains(string(page), "\n"+line) {
		t.Errorf("the page does not show %s", line)
	}
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
