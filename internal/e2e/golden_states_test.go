package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/store"
)

// goldenStates are what a golden store holds of the states of middleware, and of what
// a tenant has used.
type goldenStates struct {
	States map[string][]string // the names, by thread
	Used   map[string]int64    // by account
}

// goldenArgs have the server run the agents of the program that wrote the format, with a
// journal of what their tools do.
func goldenArgs(format, journal string) []string {
	return []string{"--config=" + goldenFile(format, "holdfast.yaml"), "--demo-journal=" + journal}
}

// goldenAccounts are accounts that never expire.
var goldenAccounts = []string{"budget/tenant/all/tokens"}

// The calls of which one is allowed in its thread, and one for the user.
const (
	allowedInThread = `use wait {"seconds": 0.01}`
	allowedForUser  = `use calculate {"expression": "6*7"}`
)

// allow has a person allow both, for later too.
func (g *goldenStates) allow(t *testing.T, p *process) {
	t.Helper()
	g.Used = map[string]int64{}
	for _, account := range goldenAccounts {
		g.Used[account] = 0
	}
	for i, text := range []string{allowedInThread, allowedForUser} {
		k := onlyTalk(t, p, "allowed")
		k.runs = 10 * i
		k.answers = map[string]string{
			"tool_call": `{"approved":true,"remember":"` + []string{"thread", "user"}[i] + `"}`,
		}
		k.wantEnd(k.says(text), "success")
		if len(k.asked) != 1 {
			t.Fatalf("%s: asked %v", text, k.asked)
		}
		for _, notice := range k.customs(permission.NoticeRemembered) {
			value, _ := notice.Data["value"].(map[string]any)
			if account, ok := value["account"].(string); ok {
				g.Used[account] = 0 // readUsed reads it
			}
		}
	}
}

// onlyTalk talks to one server of the released program.
func onlyTalk(t *testing.T, p *process, thread string) *talk {
	return (&crew{T: t, p: &member{process: p}}).talk("demo", thread)
}

// stateNames are the states in a thread's newest checkpoint.
func stateNames(t *testing.T, p *process, thread string) []string {
	t.Helper()
	k := &keepers{crew: &crew{T: t, p: &member{process: p}}}
	return slices.Sorted(maps.Keys(k.states(thread)))
}

func (g *goldenStates) readStates(t *testing.T, p *process) {
	t.Helper()
	g.States = map[string][]string{}
	for _, thread := range []string{"finished", "asked", "allowed"} {
		g.States[thread] = stateNames(t, p, thread)
	}
}

// checkStates: the states are there, and what was allowed is not asked again.
func (g *goldenStates) checkStates(t *testing.T, p *process) {
	t.Helper()
	for thread, want := range g.States {
		if got := stateNames(t, p, thread); !slices.Equal(got, want) {
			t.Errorf("%s has the states %q, want %q", thread, got, want)
		}
	}
	// On forks, so that the threads stay as they were.
	for _, text := range []string{allowedInThread, allowedForUser} {
		k := onlyTalk(t, p, "allowed-"+strings.Fields(text)[1])
		fork := &traveller{killer: &killer{T: t, p: p}}
		last := fork.checkpoints("allowed", "?limit=1")[0]
		fork.ask(201, nil, "POST", "/threads/allowed/fork", `{"checkpointId":"`+last.ID+`","threadId":"`+k.thread+`"}`)
		k.runs = 100
		k.wantEnd(k.says(text), "success")
	}
}

// used reads the accounts of a store that no server has open.
func (g *goldenStates) used(t *testing.T, store string) map[string]int64 {
	t.Helper()
	s := openStore(t, store)
	defer s.Close()
	return usedOf(t, s, slices.Sorted(maps.Keys(g.Used)))
}

func usedOf(t *testing.T, db store.Store, accounts []string) map[string]int64 {
	t.Helper()
	used, err := db.Used(t.Context(), "default", accounts)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for i, n := range used {
		out[accounts[i]] = n
	}
	return out
}

func (g *goldenStates) readUsed(t *testing.T, store string) { g.Used = g.used(t, store) }

func (g *goldenStates) checkUsed(t *testing.T, store string) {
	t.Helper()
	if got := g.used(t, store); !maps.Equal(got, g.Used) {
		t.Errorf("the accounts are %v, want %v", got, g.Used)
	}
}
