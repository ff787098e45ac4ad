package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Mutants are small breakages of the product, each of which the simulator must find. They are
// replaced texts in single files, which the compiler is given instead.

var (
	mutated = flag.Bool("mutants", false, "try the mutants: make mutants")
	only    = flag.String("only", "", "try the mutants whose names contain this")
)

// change is a text of a file, and what is put in its place.
type change struct{ file, text, instead string }

// mutant is a breakage.
type mutant struct {
	name    string
	changes []change
}

// one returns a mutant with one change.
func one(name, file, text, instead string) mutant {
	return mutant{name, []change{{file, text, instead}}}
}

// mutants are all of them.
var mutants = []mutant{
	one("the fence is not compared", "memstore/commit.go", "if t.head.Position() != c.Expect {",
		"if t.head.Next < c.Expect.Next {"),
	one("the intent comes after the call", "loop/completion.go", "if !slices.ContainsFunc(r.st.Calls, r.hasEffects) {",
		"if true {"),
	{"the clock is read at the reply", []change{
		{"journal/commit.go", "w.acked = sent", "w.acked, _ = clock.Now(), sent"},
		{"owner/lease.go", "return r.contact.renewed(asked), nil",
			"asked = clock.Now()\n\treturn r.contact.renewed(asked), nil"},
	}},
	one("a renewal counts from its reply, and nothing is asked before a tool", "loop/confirm.go",
		"if o.lease.HeldSince(proof) && (!effects || proof.Elapsed() < o.cfg.Lease/3) {", "if proof.Elapsed() >= 0 {"),
	one("the fence that is read before a tool is not compared", "loop/confirm.go",
		"err == nil && head.Fence != o.w.Fence:", "err == nil && head.Fence.Epoch == 0:"),
	one("a hand-over without a boundary: what was started counts as not started", "loop/starts.go",
		"return s.ids[call]", "return s.ids[call] && call == \"\""),
	one("a reader's cursor is off by one", "journal/tail.go", "t.Append(records)",
		"t.Append(records[min(1, len(records)-1):])"),
	one("the ledger is settled twice", "memstore/ledger.go", "delete(l.held, id)", "_ = id"),
	one("an owner that is alive is taken for silent", "owner/silence.go", "if l.Alive() {",
		"if l.Left > o.cfg.Lease*3/4 {"),
	one("silence counts for a process that was deaf", "owner/contact.go", "return max(0, c.lease-c.since.Ran())",
		"return 0"),
	one("a call in doubt is made again", "loop/batch.go",
		"case b.unsure(call) && tool.Spec().Effect == holdfast.EffectOnce:", "case b.unsure(call) && call.ID == \"\":"),
	one("a tool is not asked what became of its call", "loop/batch.go",
		"if b.unsure(call) && b.r.tools.Spec(call.Name).Effect == holdfast.EffectQuery {", "if call.ID == \"\" {"),
	one("a takeover forgets what was started", "owner/takeover.go", "Doubted:   found.Started,", "Doubted:   nil,"),
	one("records are shown before they are stored", "journal/commit.go", "sent := clock.Now()",
		"sent := clock.Now()\n\tw.Shown(thread.RecordsOf(c))"),
	one("a model is asked before the results are stored", "loop/iterate.go",
		"if err := r.w.Flush(r.ctx); err != nil {", "if err := r.ctx.Err(); err != nil {"),
	one("an ended run keeps its place", "owner/residents.go",
		"rs.places.free(holdfast.Principal{Tenant: r.start.Key.Tenant, User: r.start.Rec.User}, r.start.Agent.Of)",
		"_ = holdfast.Principal{}"),
	one("a run that was given up is not handed over", "owner/succeed.go", "if why == gaveUp && s.others {",
		"if why == gaveUp && s.others && key.Tenant == \"\" {"),
	one("a fence does not rise", "owner/owner.go", "t.Head.Fence.Epoch + 1", "t.Head.Fence.Epoch + 0"),
	one("an owner that has its lapsed lease back only reads the head", "loop/confirm.go",
		"case o.lease.HeldSince(o.w.Acknowledged()):", "case o.lease.HeldSince(asked):"),
	one("the index does not list what is due", "thread/commit.go", "!ends || !p.s.GoesOn(at) {",
		"!ends || !p.s.GoesOn(at) || p.s.Format != 0 {"),
	one("what is due is found an hour late", "upkeep/due.go", "Add(-d.after-time.Millisecond)", "Add(-time.Hour)"),
	one("a call that has expired waits on", "thread/status.go", "c.WaitsOutside() && !c.Expired(now)",
		"c.WaitsOutside()"),
	one("a thread is deleted wherever it stands", "memstore/commit.go", "t != nil && t.head.Position() != at {",
		"t == nil && at.Next > 1 {"),
	one("a pruning forgets what a checkpoint needs", "upkeep/prune.go",
		"for _, st := range p.kept {\n		for id := st.Leaf;", "for _, st := range p.kept[:1] "+
			"{\n		for id := st.Leaf;"),
	one("a client that comes back is shown everything", "http/runs.go",
		"a.runs.Events(o.ctx, who, param(r, \"thread\"), run, asked.after,", "a.runs.Events(o.ctx, who, param(r, "+
			"\"thread\"), run, store.Cursor{},"),
	one("an archive loses the last record of a run", "upkeep/archive.go",
		"thread.ArchiveRun(run.ID, run.Records, all)", "thread.ArchiveRun(run.ID, "+
			"run.Records[:len(run.Records)-1], all)"),
	one("a break in contact goes unnoticed", "owner/contact.go", "if !first && gap <= c.holds() {",
		"if !first && gap <= 1000*c.holds() {"),
}

// TestMutantsApply: every mutant's text is where it says, once.
func TestMutantsApply(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		for _, c := range m.changes {
			data, err := os.ReadFile(filepath.Join("..", c.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(data, []byte(c.text)); n != 1 {
				t.Errorf("%s: %s has its text %d times: %q", m.name, c.file, n, c.text)
			}
		}
	}
}

// mutantTime is how long a mutant is looked for, several times what 20,000 seeds take.
const mutantTime = 20 * time.Minute

// TestMutants: the simulator finds every mutant.
func TestMutants(t *testing.T) {
	if !*mutated {
		t.Skip("make mutants")
	}
	found := regexp.MustCompile(`seed (\d+): (.*) \(make`)
	fmt.Print("| mutant | found by seed | as |\n|---|---|---|\n")
	for _, m := range mutants {
		if !strings.Contains(m.name, *only) {
			continue
		}
		binary := m.build(t)
		if binary == "" {
			continue
		}
		// With a mutant, a seed may never end; what the others have found by then is told.
		ctx, cancel := context.WithTimeout(t.Context(), mutantTime)
		out, err := exec.CommandContext(ctx, binary, "-test.run=^TestSeeds$", "-test.v", "-seeds=1..20000", "-stop").
			CombinedOutput()
		cancel()
		// Seeds are played side by side, so a later one may be told first.
		hits := found.FindAllStringSubmatch(string(out), -1)
		slices.SortFunc(hits, func(a, b []string) int {
			return cmp.Or(cmp.Compare(len(a[1]), len(b[1])), cmp.Compare(a[1], b[1]))
		})
		switch {
		case len(hits) > 0:
			promise, _, _ := strings.Cut(hits[0][2], ": ")
			fmt.Printf("| %s | %s | %s |\n", m.name, hits[0][1], promise)
		case err != nil && bytes.Contains(out, []byte("deadlock")):
			fmt.Printf("| %s | | a goroutine is left |\n", m.name)
		case err != nil:
			t.Errorf("%s: %v\n%s", m.name, err, out[max(0, len(out)-2000):])
		default:
			t.Errorf("%s was not found", m.name)
			fmt.Printf("| %s | **not found** | |\n", m.name)
		}
	}
}

// build builds this test with the mutant; empty if it cannot be built.
func (m *mutant) build(t *testing.T) (binary string) {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, c := range m.changes {
		file, err := filepath.Abs(filepath.Join("..", c.file))
		if filepath.IsAbs(c.file) {
			file = c.file
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(cmp.Or(overlay.Replace[file], file))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte(c.text)); n != 1 {
			t.Fatalf("%s: %s has its text %d times: %q", m.name, c.file, n, c.text)
		}
		broken := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(broken, bytes.Replace(data, []byte(c.text), []byte(c.instead), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[file] = broken
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "simulate.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, ".").
		CombinedOutput()
	if err != nil {
		t.Errorf("%s does not build: %v\n%s", m.name, err, out)
		return ""
	}
	return binary
}
