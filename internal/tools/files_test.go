package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/tools"
)

// use calls a tool; its text, or that of its error after "error: ".
func use(t *testing.T, tool holdfast.Tool, arguments any, state *json.RawMessage) string {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	c := holdfast.ToolCall{ID: "c", Name: tool.Spec().Name, Arguments: raw}
	var updates []holdfast.StateUpdate
	if state != nil {
		c.State = *state
	}
	result, err := tool.Call(holdfast.ContextWithCall(t.Context(), c, func(u holdfast.StateUpdate) {
		updates = append(updates, u)
	}), c)
	for _, u := range updates {
		if err != nil {
			break
		}
		var next json.RawMessage
		if next, err = u(*state); err == nil {
			*state = next
		}
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Text
}

type m = map[string]any

// TestFiles: what is below the directory can be read in pieces, and nothing else at all.
func TestFiles(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "docs")
	write := func(name, text string) {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secret.txt", "secret")
	write("docs/a.md", "one\ntwo\nthree é\n")
	write("docs/sub/b.md", "héé")
	write("docs/empty", "")
	write("docs/binary", "a\x00b")
	write("docs/latin", "h\xe9")
	for link, to := range map[string]string{"out": "../secret.txt", "abs": filepath.Join(top, "secret.txt"),
		"up": "..", "in": "a.md"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := tools.Files(tools.FilesOptions{Directory: dir, MaxBytes: 12, MaxEntries: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, read := f.Tools[0], f.Tools[1]
	if list.Spec().Effect != holdfast.EffectPure || read.Spec().Effect != holdfast.EffectPure {
		t.Error("they only read")
	}
	for _, c := range []struct {
		tool      holdfast.Tool
		arguments m
		want      string
	}{
		{list, m{}, "a.md 17\nabs (a link)\nbinary 3\nempty 0\n[6 more: list them with after \"empty\"]\n"},
		{list, m{"after": "out"}, "pipe (no file that can be read)\nsub/\nup (a link)\n"},
		{list, m{"path": "sub"}, "b.md 5\n"},
		{list, m{"path": "sub", "after": "z"}, "There is nothing."},
		{list, m{"path": ".."}, "error: "}, {list, m{"path": "up"}, "error: "}, {list, m{"path": "/"}, "error: "},
		{list, m{"path": "none"}, `error: there is no "none"`},
		{read, m{"path": "a.md"}, "one\ntwo\n\n[8 of 17 bytes; go on with offset 8]"},
		{read, m{"path": "in", "offset": 8}, "three é\n"},
		{read, m{"path": "a.md", "offset": 17}, "[nothing more]"},
		{read, m{"path": "a.md", "offset": 18}, "error: a.md has only 17 bytes"},
		{read, m{"path": "sub/../sub/b.md", "limit": 2}, "h\n[1 of 5 bytes; go on with offset 1]"},
		{read, m{"path": "sub/b.md", "offset": 2}, "é"},
		{read, m{"path": "sub/b.md", "offset": 1, "limit": 1}, "error: limit is too small"},
		{read, m{"path": "empty"}, "[nothing more]"},
		{read, m{"path": "binary"}, "error: binary is not a text"},
		{read, m{"path": "latin"}, "error: latin is not a text"},
		{read, m{"path": "sub"}, "error: sub is a directory"},
		{read, m{"path": "pipe"}, "error: pipe is no file"},
		{read, m{"path": "a.md", "offset": -1}, "error: "},
		{read, m{"path": "out"}, "error: "}, {read, m{"path": "abs"}, "error: "},
		{read, m{"path": "../secret.txt"}, "error: "}, {read, m{"path": "up/secret.txt"}, "error: "},
		{read, m{"path": filepath.Join(top, "secret.txt")}, "error: "}, {read, m{"path": ""}, "error: "},
		{read, m{"path": "a\x00b"}, "error: "},
	} {
		got := use(t, c.tool, c.arguments, nil)
		if got != c.want && (!strings.HasPrefix(c.want, "error: ") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %v: %q, want %q", c.tool.Spec().Name, c.arguments, got, c.want)
		}
		if strings.Contains(got, "secret") && !strings.HasPrefix(got, "error: ") {
			t.Errorf("%v: %q", c.arguments, got)
		}
	}
	for _, o := range []tools.FilesOptions{{}, {Directory: filepath.Join(top, "none")},
		{Directory: dir, MaxBytes: -1}} {
		if _, err := tools.Files(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestScratchpad: notes are read, written and appended beside whatever else is in the
// state, and they are bounded.
func TestScratchpad(t *testing.T) {
	t.Parallel()
	pad := tools.Scratchpad()
	state := json.RawMessage(`{"plan":[1.0]}`)
	for _, c := range []struct {
		arguments m
		want      string
		state     string
	}{
		{m{"action": "read"}, "The scratchpad is empty.", `{"plan":[1.0]}`},
		{m{"action": "append", "text": "a"}, "Saved.", `{"plan":[1.0],"scratchpad":"a"}`},
		{m{"action": "append", "text": "b\n"}, "Saved.", `{"plan":[1.0],"scratchpad":"ab\n"}`},
		{m{"action": "read"}, "ab\n", `{"plan":[1.0],"scratchpad":"ab\n"}`},
		{m{"action": "write", "text": strings.Repeat("x", 32<<10+1)},
			"error: the scratchpad would have 32769 bytes; it has room for 32768",
			`{"plan":[1.0],"scratchpad":"ab\n"}`},
		{m{"action": "write", "text": "c"}, "Saved.", `{"plan":[1.0],"scratchpad":"c"}`},
		{m{"action": "delete"}, `error: action must be read, write or append, not "delete"`,
			`{"plan":[1.0],"scratchpad":"c"}`},
	} {
		if got := use(t, pad, c.arguments, &state); got != c.want || string(state) != c.state {
			t.Errorf("%.60v: %q, %.60s", c.arguments, got, state)
		}
	}
	for _, other := range []string{`[1]`, `{"scratchpad":7}`} {
		state := json.RawMessage(other)
		if got := use(t, pad, m{"action": "append", "text": "x"}, &state); !strings.HasPrefix(got, "error: ") ||
			string(state) != other {
			t.Errorf("%s: %s", other, got)
		}
	}
	empty := json.RawMessage(nil)
	if got := use(t, pad, m{"action": "write", "text": "x"}, &empty); got != "Saved." ||
		string(empty) != `{"scratchpad":"x"}` {
		t.Errorf("%s, %s", got, empty)
	}
}

// TestManyFiles: a large directory is listed in pages, whatever order the system has, and a
// name cannot look like several lines.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("f%04d", (i*7919)%300)
		want = append(want, name+" 0")
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for _, name := range []string{"a\nb 7", "\x1b[2J", "\xff", "\u202eb", "é"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := tools.Files(tools.FilesOptions{Directory: dir, MaxEntries: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want = slices.Concat([]string{`"\x1b[2J" 0`, `"a\nb 7" 0`}, want, []string{"é 0", `"\u202eb" 0`, `"\xff" 0`})
	var got []string
	after := ""
	for pages := 0; ; pages++ {
		page := strings.TrimSuffix(use(t, f.Tools[0], m{"after": after}, nil), "\n")
		lines := strings.Split(page, "\n")
		last := lines[len(lines)-1]
		if pages > 50 || !strings.HasPrefix(last, "[") {
			got = append(got, lines...)
			break
		}
		got = append(got, lines[:len(lines)-1]...)
		var left int
		if n, err := fmt.Sscanf(last, "[%d more: list them with after %q]", &left, &after); n != 2 || err != nil ||
			left != len(want)-len(got) {
			t.Fatalf("%s: %v, after %d", last, err, len(got))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %d of %d: %q", len(got), len(want), got[max(0, len(got)-5):])
	}
}

// TestSwappedDirectory: while a directory is replaced by a link that leads out, and back,
// nothing outside is read or listed.
func TestSwappedDirectory(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, outside := filepath.Join(top, "docs"), filepath.Join(top, "outside")
	for _, d := range []string{filepath.Join(dir, "sub"), outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "sub", "f"), []byte("fine"), 0o600),
		os.WriteFile(filepath.Join(outside, "f"), []byte("hidden"), 0o600),
		os.WriteFile(filepath.Join(outside, "hidden"), nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	f, err := tools.Files(tools.FilesOptions{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		sub, away, link := filepath.Join(dir, "sub"), filepath.Join(dir, "away"), filepath.Join(dir, "link")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, _, _, _ = os.Rename(sub, away), os.Rename(link, sub), os.Rename(sub, link), os.Rename(away, sub)
		}
	}()
	fine := 0
	for range 500 {
		for _, got := range []string{use(t, f.Tools[1], m{"path": "sub/f"}, nil),
			use(t, f.Tools[0], m{"path": "sub"}, nil)} {
			if strings.Contains(got, "hidden") {
				t.Fatalf("got %q", got)
			}
			if got == "fine" {
				fine++
			}
		}
	}
	close(stop)
	<-swapped
	if fine == 0 {
		t.Error("nothing was ever read, so this shows nothing")
	}
}
