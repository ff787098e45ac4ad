package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// Two kinds of time look the same: what is written down for others to compare, by a clock that
// may be set or read late, and what this process measures. internal/clock gives them types of
// their own, a Stamp and a Moment, of which neither can be made from the other. The parts of
// time that are left.Time where there are stamps is held here.

const clockPackage = "internal/clock"

// ages are the files that compare what stands in the store with the time of a stamp, and why
// that is right to be early or late by as much as a clock was moved.
var ages = map[string]string{
	"internal/indexing/indexing.go": "who walks says in the store when",
	"internal/owner/loss.go":        "how long nothing was written to a thread, for a line of the log",
	"internal/upkeep/count.go":      "how long nothing was written to a thread, for what is counted of it",
	"internal/http/aisdk.go": "a page that has read a history since then is shown a " +
		"complete answer once more",
	"internal/upkeep/retention.go": "retention is by the ages of what is stored",
	"internal/upkeep/due.go":       "how late something is found that stands in the index",
	"internal/upkeep/walk.go":      "retention is by the ages of what is stored",
	"internal/redisstore/watchers.go": "until when a thread publishes its commits stands in Redis, and those who " +
		"write to it compare that with their stamps",
	"internal/redisstore/announced.go": "a wrong hint is removed by the clock that hints are written by",
	"internal/redisstore/owners.go":    "the ends of leases stand in Redis",
	"server/validity.go":               "an API key or token ends when its issuer has written",
}

// timers are the files that subtract a time.Time in a package where there are stamps.
var timers = map[string]string{
	"internal/http/exchange/recorder.go": "deadlines of connections, by time.Now",
	"internal/owner/errors.go":           "two stamps of a run that waits, which stand in the store",
	"internal/pin/pin.go":                "how long this process has found a run without its owner, by time.Now",
	"internal/redisstore/presence.go":    "the end of a lease and the time, which Redis has said in one answer",
	"internal/redisstore/judge.go":       "looks at who is there, by time.Now",
	"internal/redisstore/looks.go":       "looks at who is there, by time.Now",
	"internal/redisstore/news.go":        "how often news are told, by time.Now",
	"internal/redisstore/peers.go":       "looks at who is there, by time.Now",
}

// plainClocks are the fields, variables and functions, or packages, whose clocks may be a func() time.Time.
var plainClocks = map[string]string{
	"server.Config.Now":           "public: programs know no package of ours for it",
	"server.sharedClock":          "makes the clock for stamps of what the program or the store has",
	"internal/stores.Options.Now": "the clock of this machine, of which the store makes that of Redis",
	"internal/redisstore":         "the clock of this machine, of which the store makes that of Redis",
	"internal/circuit":            "how long a model is not asked, which is this process's own",
	"internal/modelhttp":          "dates in the headers of answers",
	"internal/tools":              "what the tool that tells the time tells",
}

// shown are the files that may ask a store for its time as a time.Time.
var shown = map[string]string{
	"server/new.go":                        "makes the clock for stamps of it",
	"middleware/internal/shared/ledger.go": "gives the accounts of middleware the time of their store",
}

// allowed reports whether a list has what was found, and notes that the entry is needed.
func allowed(list map[string]string, what string, needed map[string]bool) bool {
	needed[what] = true
	return list[what] != ""
}

// mixed returns what in a package makes no difference between the two kinds of time. It notes in
// needed what it looks for in the lists.
func mixed(p *code, stamps bool, needed map[string]bool) (found []string) {
	file := func(n ast.Node) string { return p.name + "/" + p.file(n.Pos()) }
	say := func(n ast.Node, text string) { found = append(found, p.name+"/"+p.where(n.Pos())+": "+text) }
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				fn, ok := p.info.Uses[n.Sel].(*types.Func)
				if !ok || fn.Pkg() == nil {
					return true
				}
				switch name := funcName(fn); {
				case stamps && slices.Contains([]string{"time.Time.Sub", "time.Since", "time.Until"}, name) &&
					!allowed(timers, file(n), needed):
					say(n, "subtracts times where there are stamps. How long something took here is clock.Now() "+
						"before it, and Ran or Elapsed after it; how old something is that stands in the store is "+
						"Stamp.Age. If neither fits, give the file a reason in timers")
				case strings.HasSuffix(name, "clock.Stamp.Age") && !allowed(ages, file(n), needed):
					say(n, "compares a stamp with what was written down. Nothing in a process is measured like that: "+
						"a clock that is set, or an answer that is late, would make it wrong by as much. If it "+
						"stands in the store, give the file a reason in ages")
				case strings.HasSuffix(name, "store.Clock.Now") && !allowed(shown, file(n), needed):
					say(n, "asks for the store's time as a time.Time. Take it as a clock.Stamp from the "+
						"clock.Shared that you were given")
				}
			}
			return true
		})
	}
	return append(found, plain(p, needed)...)
}

// funcName is a function's name with its package and its receiver's type.
func funcName(fn *types.Func) string {
	path := strings.TrimPrefix(fn.Pkg().Path(), module+"/")
	if recv := fn.Signature().Recv(); recv != nil {
		t := recv.Type()
		if ptr, ok := t.(*types.Pointer); ok {
			t = ptr.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			return path + "." + named.Obj().Name() + "." + fn.Name()
		}
	}
	return path + "." + fn.Name()
}

// plain returns the clocks of a package that are a func() time.Time.
func plain(p *code, needed map[string]bool) (found []string) {
	ours := p.name == "server" || strings.HasPrefix(p.name, "internal/") || p.name == "clock"
	if !ours {
		return nil
	}
	for id, obj := range p.info.Defs {
		v, ok := obj.(*types.Var)
		if !ok || types.TypeString(v.Type(), nil) != "func() time.Time" {
			continue
		}
		within := p.name + "." + v.Name()
		if v.IsField() {
			within = p.name + "." + ownerOf(p, v) + "." + v.Name()
		} else if fn := functionAt(p, id); fn != "" {
			within = p.name + "." + fn
		}
		if !allowed(plainClocks, within, needed) && !allowed(plainClocks, p.name, needed) {
			found = append(found, fmt.Sprintf("%s/%s: %s is a clock that is a func() time.Time. A clock for what is "+
				"written down is a clock.Shared; what is measured here needs none: clock.Now", p.name,
				p.where(id.Pos()), within))
		}
	}
	slices.Sort(found)
	return found
}

// ownerOf is the name of the type that has the field.
func ownerOf(p *code, field *types.Var) string {
	for _, name := range p.types.Scope().Names() {
		obj := p.types.Scope().Lookup(name)
		if s, ok := obj.Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if f == field {
					return name
				}
			}
		}
	}
	return ""
}

// functionAt is the name of the function around an identifier.
func functionAt(p *code, id *ast.Ident) string {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= id.Pos() && id.Pos() < fn.End() {
				return fn.Name.Name
			}
		}
	}
	return ""
}

// hasStamps reports whether a package knows the clock for stamps.
func hasStamps(p *code) bool {
	return p.name == "internal/redisstore" || slices.ContainsFunc(p.types.Imports(), func(i *types.Package) bool {
		return i.Path() == module+"/"+clockPackage
	})
}

// TestClocks: what is written down and what is measured are two kinds of time.
func TestClocks(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{}
	for _, p := range modulePackages(t) {
		if p.again || p.name == clockPackage {
			continue
		}
		for _, line := range mixed(p, hasStamps(p), needed) {
			t.Error(line)
		}
	}
	for _, list := range []map[string]string{ages, timers, plainClocks, shown} {
		for name := range list {
			if !needed[name] {
				t.Errorf("%s is in a list of internal/archtest/clock_test.go and has nothing "+
					"that needs it: take it out", name)
			}
		}
	}
}

// TestClocksSeen: the rule sees each way of mixing them.
func TestClocksSeen(t *testing.T) {
	t.Parallel()
	got := mixed(fixture(t, "clock", module+"/"+clockPackage, module+"/store"), true, map[string]bool{})
	var lines []string
	for _, line := range got {
		at, _, _ := strings.Cut(line, ": ")
		lines = append(lines, at)
	}
	slices.Sort(lines)
	want := []string{
		"clock/mixed.go:13",
		"clock/mixed.go:18",
		"clock/mixed.go:21",
		"clock/mixed.go:23",
		"clock/mixed.go:25",
		"clock/mixed.go:28",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q\n%s\nwant %q", lines, strings.Join(got, "\n"), want)
	}
}
