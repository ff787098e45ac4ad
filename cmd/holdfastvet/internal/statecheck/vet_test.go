package statecheck_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is the root of the repository, relative to this package.
const repository = "../../../.."

// A user builds the tool and passes it to go vet: it finds nothing in this repository,
// and in a module with one mistake of each kind it finds all of them.
func TestVet(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "holdfastvet")
	if out, err := run(repository, "build", "-o", tool, "./cmd/holdfastvet"); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Run("this repository is clean", func(t *testing.T) {
		t.Parallel()
		if out, err := run(repository, "vet", "-vettool="+tool, "work"); err != nil {
			t.Errorf("go vet: %v\n%s", err, out)
		}
	})
	t.Run("a user's module has mistakes", func(t *testing.T) {
		t.Parallel()
		out, err := run(wrongModule(t), "vet", "-vettool="+tool, "./...")
		if err == nil {
			t.Error("go vet succeeds")
		}
		for _, want := range []string{
			"wrong.go:16:6: HF001: ", "wrong.go:23:2: HF002: ", "wrong.go:17:51: HF003: ", "wrong.go:12:2: HF004: ",
			"wrong.go:18:51: HF005: ", "wrong.go:22:11: HF006: ",
			"State (example.com/wrong/other, other.go:7:11)",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("go vet does not say %q:\n%s", want, out)
			}
		}
		if n := strings.Count(out, ": HF"); n != 6 {
			t.Errorf("go vet finds %d mistakes, want 6:\n%s", n, out)
		}
	})
}

func run(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const wrongGo = `package wrong

import (
	"context"

	"example.com/wrong/other"
	"github.com/holdfast-agents/holdfast/state"
)

type seen struct {
	Seen map[string]int
	Done chan int
}

var (
	_ = state.Register(state.Spec[*seen]{Name: "acme.pointer"})
	_ = state.Register(state.Spec[other.State]{Name: "acme.state"})
	_ = state.Register(state.Spec[other.State]{Name: "holdfast.state"})
)

func hook(ctx context.Context) {
	st, _ := state.Register(state.Spec[seen]{Name: "acme.seen"}).Load(ctx)
	st.Seen["x"]++
}
`

const otherGo = `package other

import "github.com/holdfast-agents/holdfast/state"

type State struct{ N int }

var Key = state.Register(state.Spec[State]{Name: "acme.state"})
`

// wrongModule writes a module that uses this copy of the repository.
func wrongModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/holdfast-agents/holdfast"
	mod := strings.Replace(read(t, filepath.Join(root, "go.mod")), "module "+path, "module example.com/wrong", 1)
	mod += "\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + root + "\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": mod, "go.sum": read(t, filepath.Join(root, "go.sum")), "wrong.go": wrongGo, "other/other.go": otherGo,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
