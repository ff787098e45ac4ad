package archtest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// campaignList is scripts/proofs.txt: the targets that are campaigns, and the others with the
// reason why they are none.
type campaignList struct{ campaigns, others map[string]string }

func readCampaigns(text string) campaignList {
	p := campaignList{map[string]string{}, map[string]string{}}
	for line := range strings.Lines(text) {
		list := p.campaigns
		if rest, other := strings.CutPrefix(line, "- "); other {
			line, list = rest, p.others
		}
		if name, rest, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name != "#" {
			list[name] = strings.TrimSpace(rest)
		}
	}
	return p
}

var (
	helpLine = regexp.MustCompile(`(?m)^([a-z-]+):.*## (.*)$`)
	proofRow = regexp.MustCompile("(?m)^\\| `make ([a-z-]+)` \\|")
	// figuring is what the help of a target says that measures something.
	figuring = regexp.MustCompile(`\bprints|\btable\b|[A-Z]+ times`)
)

// unproved says what is wrong with the list of campaigns.
func unproved(makefile, list, page string) (wrong []string) {
	p := readCampaigns(list)
	targets := map[string]string{}
	for _, m := range helpLine.FindAllStringSubmatch(makefile, -1) {
		name, help := m[1], m[2]
		targets[name] = help
		_, campaign := p.campaigns[name]
		reason, other := p.others[name]
		switch {
		case campaign == other:
			wrong = append(wrong, fmt.Sprintf("make %s must stand in scripts/proofs.txt, once: as a campaign, or "+
				"with the reason why it is none", name))
		case other && reason == "":
			wrong = append(wrong, fmt.Sprintf("scripts/proofs.txt does not say why make %s is no campaign", name))
		case other && figuring.MatchString(help):
			wrong = append(wrong, fmt.Sprintf("make %s says that it measures something, so it is a "+
				"campaign of scripts/proofs.txt", name))
		}
	}
	for _, list := range []map[string]string{p.campaigns, p.others} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if targets[name] == "" {
				wrong = append(wrong, fmt.Sprintf("scripts/proofs.txt has %s, which is no target with a help", name))
			}
		}
	}
	for _, m := range proofRow.FindAllStringSubmatch(page, -1) {
		if _, campaign := p.campaigns[m[1]]; !campaign {
			wrong = append(wrong, fmt.Sprintf("docs/proofs.md has a row of make %s, which is no campaign", m[1]))
		}
	}
	return wrong
}

// TestProofs says which campaign make all-proofs would forget.
func TestProofs(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, wrong := range unproved(read("Makefile"), read("scripts/proofs.txt"), read("docs/proofs.md")) {
		t.Error(wrong)
	}
}

func TestProofsSeen(t *testing.T) {
	t.Parallel()
	makefile := "size: ## how large it is\nkills: ## kill it KILLS times\nfmt: ## format\nnew: ## prints a table\n"
	got := unproved(makefile, "# list\nsize [0-9]+\n- kills is slow\n- fmt\ngone\n", "| `make old` | x |\n")
	want := []string{"make kills says", "why make fmt", "make new must", "has gone", "row of make old"}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
			t.Errorf("nothing says %q: %q", w, got)
		}
	}
}

// TestAllProofs runs the script in a repository with campaigns that take no time: one fails
// until a file is there, and one is not chosen.
func TestAllProofs(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "git", "make", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	r := newProofsRepository(t)
	out, err := r.run("bash", "scripts/proofs.sh", "first second")
	if err == nil || !strings.HasSuffix(out, "failed: second\n") {
		t.Errorf("a failed campaign: %v\n%s", err, out)
	}
	commit := r.must("git", "log", "-1", "--format=%h")
	r.row("first", commit, "7 kills, 0 lost; 8 kills, 1 lost")
	r.row("second", commit, "**failed**: --- FAIL: it is too slow")
	r.row("third", "c0ffee", "from before")
	r.must("git", "commit", "-qam", "The page")

	r.write("bin/fast", "")
	if out := r.must("bash", "scripts/proofs.sh"); strings.Count(out, "ran ") != 2 {
		t.Errorf("what has passed runs again, or the rest does not run:\n%s", out)
	}
	r.row("second", commit, "2 packages pass")
	r.row("third", commit, "done: 3")

	r.write("code", "other")
	if out := r.must("bash", "scripts/proofs.sh", "first"); !strings.Contains(out, "ran first") {
		t.Errorf("what has passed with other code does not run:\n%s", out)
	}
	r.row("first", commit+" with changes", "7 kills, 0 lost; 8 kills, 1 lost")
	if out, err := r.run("bash", "scripts/proofs.sh", "unknown"); err == nil {
		t.Errorf("an unknown campaign: %s", out)
	}
}

// proofsRepository is a repository with the script, and with campaigns of its own.
type proofsRepository struct {
	*testing.T
	dir string
}

func newProofsRepository(t *testing.T) *proofsRepository {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(root, "scripts/proofs.sh"))
	if err != nil {
		t.Fatal(err)
	}
	r := &proofsRepository{t, t.TempDir()}
	r.write("scripts/proofs.sh", string(script))
	r.write("scripts/proofs.txt", "# campaigns\nfirst\nsecond\nthird done: .*\n- help lists\n")
	r.write("docs/proofs.md", "# Proofs\n\n| command | date | commit | took | result |\n|---|---|---|---|---|\n"+
		"| `make third` | 2001-02-03 | c0ffee | 1 s | from before |\n| `make gone` | 2001-02-03 | c0ffee | "+
		"1 s | x |\n\nThe end.\n")
	r.write("code", "")
	r.write(".gitignore", "/bin/\n")
	r.write("Makefile", `KILLS ?= 7
first:
	@echo ran first; echo "| kills | lost |"; echo "|---|---|"
	@echo "    a_test.go:12: | $(KILLS) kills | 0 lost |"; echo "| 8 kills | 1 lost |"
second:
	@echo ran second; test -f bin/fast || { echo "--- FAIL: it is too slow"; exit 1; }; echo "ok  a 1s"; echo "ok  b 1s"
third:
	@echo ran third; echo "done: 3"
`)
	r.must("git", "init", "-q")
	r.must("git", "add", ".")
	r.must("git", "commit", "-qm", "All")
	return r
}

func (r *proofsRepository) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

func (r *proofsRepository) run(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), name, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "KILLS=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *proofsRepository) must(name string, args ...string) string {
	r.Helper()
	out, err := r.run(name, args...)
	if err != nil {
		r.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(out)
}

// row fails unless the page has the row of a campaign, and its other text.
func (r *proofsRepository) row(name, commit, result string) {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "docs/proofs.md"))
	if err != nil {
		r.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `make " + name + "` \\| [0-9-]{10} \\| " + commit + ` \| [0-9]+ s \| (.*) \|$`)
	found := row.FindAllSubmatch(text, -1)
	if len(found) != 1 || string(found[0][1]) != result {
		r.Errorf("no row of %s on %s that says %q:\n%s", name, commit, result, text)
	}
	if !strings.HasPrefix(string(text), "# Proofs\n\n| command") ||
		!strings.HasSuffix(string(text), " |\n\nThe end.\n") || strings.Contains(string(text), "make gone") {
		r.Errorf("the page is\n%s", text)
	}
}
