package archtest

import (
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// The repository has several modules, so that a program that embeds the server requires what
// the server needs and no more. go.work joins them.

// installed are the modules whose commands people install. go install refuses a go.mod with a
// replacement in it.
var installed = []string{".", "cmd/holdfastvet"}

// notJoined are the modules that go.work leaves out, and why.
var notJoined = map[string]string{
	"tools": "the formatter and the linter have requirements that would change the versions of everybody's",
}

// goMod is a go.mod or go.work as the go command tells it.
type goMod struct {
	Use     []struct{ DiskPath string }
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old, New struct{ Path string } }
}

// TestModules: go.work joins all modules, people can install the commands, and what is built
// and tested in the workspace is what each go.mod says.
func TestModules(t *testing.T) {
	t.Parallel()
	folders := modules(t)
	joined := map[string]bool{}
	for _, use := range edited(t, "work", ".").Use {
		joined[filepath.ToSlash(filepath.Clean(use.DiskPath))] = true
	}
	main := edited(t, "mod", ".")
	version := map[string]string{}
	for _, r := range main.Require {
		version[r.Path] = r.Version
	}
	for _, folder := range folders {
		if joined[folder] == (notJoined[folder] != "") {
			t.Errorf("%s/go.mod must either be in go.work or have a reason in notJoined", folder)
		}
		if !joined[folder] {
			continue
		}
		m := edited(t, "mod", folder)
		if m.Go != main.Go {
			t.Errorf("%s/go.mod is for go %s, the server's is for %s", folder, m.Go, main.Go)
		}
		if len(m.Replace) > 0 && slices.Contains(installed, folder) {
			t.Errorf("%s/go.mod replaces %s: nobody can install its command", folder, m.Replace[0].Old.Path)
		}
		for _, r := range m.Require {
			if at := version[r.Path]; at != "" && at != r.Version {
				t.Errorf("%s/go.mod requires %s %s, the server's %s: in go.work both get one of them", folder, r.Path,
					r.Version, at)
			}
		}
	}
	for _, folder := range installed {
		if !slices.Contains(folders, folder) {
			t.Errorf("there is no %s/go.mod", folder)
		}
	}
}

// edited is a module's go.mod, or the go.work in a folder.
func edited(t *testing.T, kind, folder string) goMod {
	t.Helper()
	cmd := exec.Command("go", kind, "edit", "-json")
	cmd.Dir = filepath.Join(root, folder)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s edit in %s: %v", kind, folder, err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// modules are the folders with a go.mod.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case d.Name() == "go.mod":
			folder, err := filepath.Rel(root, filepath.Dir(path))
			folders = append(folders, filepath.ToSlash(folder))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}
