package e2e

// The outcome of a tool call when something dies in the middle of it: each kind of call, at
// each moment, by effect, for each death, on both stores. The file that the other side writes
// counts what was sent and what was done. The table in docs/durability.md is made here.

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The parts that die.
const (
	diesHoldfast = "Holdfast"
	diesPeer     = "the other side"
	diesNetwork  = "the network"
)

var dying = []string{diesHoldfast, diesPeer, diesNetwork}

// The moments of a call, as the table calls them.
const (
	atUnsent   = "nothing is sent"
	atReceived = "the other side has the call"
	atDone     = "the work is done"
	atAsked    = "a question waits"
	atHandle   = "the handle is kept"
	atWaiting  = "the result is awaited"
	atArriving = "the result arrives"
	atTaken    = "the result is taken"
)

// mortalKind is a kind of call.
type mortalKind struct {
	name string
	// side is what the other side is: an MCP server over stdio or http, or a service.
	side string
	// local and remote are what tools' names begin with, here and at the other side.
	local, remote string
	effects       []string
	moments       []string
}

var (
	mcpEffects = []string{"pure", "idempotent", "once", "ask"}
	allEffects = []string{"pure", "idempotent", "once", "ask", "query"}
)

// outsideCall is the effect of the calls that are finished from outside: none matters.
const outsideCall = "outside"

var mortalKinds = []*mortalKind{
	{"MCP over stdio", "stdio", "npm_call_", "call_", mcpEffects, []string{atUnsent, atReceived, atDone}},
	{"MCP over HTTP", "http", "npm_call_", "call_", mcpEffects, []string{atUnsent, atReceived, atDone}},
	{"MCP, a question", "http", "npm_question_", "question_", mcpEffects, []string{atAsked, atReceived, atDone}},
	{"MCP, a task", "http", "npm_task_", "task_", mcpEffects, []string{atReceived, atHandle, atDone}},
	{"HTTP tool", "service", "", "", allEffects, []string{atUnsent, atReceived, atDone}},
	{"Go with `Keep`", "service", "job_", "job_", allEffects, []string{atUnsent, atReceived, atHandle, atDone}},
	{
		"outside call",
		"service",
		"",
		"",
		[]string{outsideCall},
		[]string{atUnsent, atReceived, atDone, atWaiting, atArriving, atTaken},
	},
}

// waits reports whether the calls wait for the other side, however long it is away.
func (k *mortalKind) waits(moment string) bool {
	return k.side == "service" && k.effects[0] == outsideCall ||
		slices.Contains(k.moments, atHandle) && (moment == atHandle || moment == atDone) || moment == atAsked
}

// scene is one death of one kind of call: a call of each effect is under way.
type scene struct {
	*mortalKind
	moment, dies, store string
}

func (s scene) String() string {
	return strings.NewReplacer(" ", "_", ",", "", "`", "").
		Replace(strings.Join([]string{s.store, s.name, s.moment, s.dies}, "/"))
}

// cell is what came of a call.
type cell struct {
	sent, did int
	read      string
}

func (c cell) String() string { return fmt.Sprintf("%d sent, %d done: %s", c.sent, c.did, c.read) }

// place is where a cell is in the table.
type place struct{ kind, moment, effect, dies string }

var rewriteDeaths = flag.Bool("update", false,
	"write the table of deaths into docs/durability.md; with "+deathsVariable+"=all")

// deathsVariable says which scenes are played: 3/24 is every 24th of each store, from the
// 3rd; all is each. The order is a shuffled one.
const deathsVariable, someDeaths = "HOLDFAST_DEATHS", "0/24"

// TestDeaths kills processes in the middle of calls with kill -9, and cuts the network. The
// outcome of each call is what the table says, and what a user can accept.
func TestDeaths(t *testing.T) {
	t.Parallel()
	all := os.Getenv(deathsVariable) == "all"
	var mu sync.Mutex
	cells := map[place]map[string]cell{}
	t.Run("scenes", func(t *testing.T) {
		for _, s := range deathScenes(t) {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				got := s.play(t)
				mu.Lock()
				defer mu.Unlock()
				for effect, c := range got {
					at := place{s.name, s.moment, effect, s.dies}
					if cells[at] == nil {
						cells[at] = map[string]cell{}
					}
					cells[at][s.store] = c
					for _, wrong := range s.judge(effect, c) {
						t.Errorf("%s: %s: %s", effect, c, wrong)
					}
				}
			})
		}
	})
	page := readDeaths(t)
	if all {
		table := deathsTable(t, cells)
		t.Logf("%d scenes\n%s", len(deathScenes(t)), table)
		if page.text != table && !*rewriteDeaths {
			t.Errorf("docs/durability.md has another table; make deaths UPDATE=-update writes it")
		}
		if *rewriteDeaths && !t.Failed() {
			page.write(t, table)
		}
		return
	}
	for at, stores := range cells {
		for store, c := range stores {
			if want := page.cells[at]; c.String() != want {
				t.Errorf("%s: %v: %s, and docs/durability.md says: %s", store, at, c, want)
			}
		}
	}
}

// deathScenes are the scenes that are to be played.
func deathScenes(t *testing.T) (scenes []scene) {
	t.Helper()
	value := cmp.Or(os.Getenv(deathsVariable), someDeaths)
	k, n := 0, 1
	if value != "all" {
		first, parts, _ := strings.Cut(value, "/")
		var err, err2 error
		if k, err = strconv.Atoi(first); err == nil {
			n, err2 = strconv.Atoi(parts)
		}
		if err != nil || err2 != nil || k < 0 || k >= n {
			t.Fatalf("%s=%s: write all, or a part such as %s", deathsVariable, value, someDeaths)
		}
	}
	for i, store := range []string{"file", "redis"} {
		var all []scene
		for _, kind := range mortalKinds {
			for _, moment := range kind.moments {
				for _, dies := range dying {
					if kind.side != "stdio" || dies != diesNetwork {
						all = append(all, scene{kind, moment, dies, store})
					}
				}
			}
		}
		rand.New(rand.NewPCG(17, uint64(i))).Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		for j, s := range all {
			if j%n == k {
				scenes = append(scenes, s)
			}
		}
	}
	return scenes
}

// The result that the model reads of a call, or its other outcome.
const (
	readResult   = "result"
	readLookedUp = "looked up"
	readUnknown  = "not known"
	readUnsent   = "not sent"
	readNotDone  = "not done"
	personAsked  = "a person is asked"
)

// judge says what is wrong with what came of a call, whatever the table says.
func (s scene) judge(effect string, c cell) (wrong []string) {
	must := func(ok bool, what string) {
		if !ok {
			wrong = append(wrong, what)
		}
	}
	finished := c.read == readResult || c.read == readLookedUp
	must(effect == "pure" || c.did <= 1, "the work was done more than once")
	must(!finished || c.did > 0, "there is a result, and nothing was done")
	must(c.read != readNotDone || c.did == 0, "the model reads that nothing was done, and something was")
	must(c.read != readUnsent || c.sent == 0, "the model reads that nothing was sent, and something was")
	switch effect {
	case "once", "ask":
		must(c.sent <= 1, "it was sent more than once")
	case "query":
		must(c.read != readUnknown, "nobody has asked the other side what became of it")
	default:
		must(finished, "it may be done again, and has no result")
	}
	if c.read == readUnknown || c.read == personAsked {
		must(c.read != personAsked || effect == "ask", "a person is asked unasked")
		must(c.read != readUnknown || effect != "ask", "no person is asked")
		must(c.sent > 0 || s.dies == diesHoldfast, "nothing was sent, and it counts as not known")
	} else {
		must(finished || c.read == readUnsent || c.read == readNotDone, "the model reads something else")
	}
	return wrong
}

// TestDeathsCanFail: a tool that is idempotent by its own word alone is found out.
func TestDeathsCanFail(t *testing.T) {
	t.Parallel()
	liars := &mortalKind{name: "HTTP tool", side: "service", effects: []string{"liar"}}
	s := scene{liars, atDone, diesHoldfast, "file"}
	c := s.play(t)["liar"]
	if wrong := s.judge("liar", c); c.did != 2 || !slices.Contains(wrong, "the work was done more than once") {
		t.Errorf("%s: %q", c, wrong)
	}
}

// deathsPage is the page with the table.
type deathsPage struct {
	before, text, after string
	cells               map[place]string
}

const (
	deathsFile   = "../../docs/durability.md"
	deathsHeader = "| call | when | effect | Holdfast dies | the other side dies | the network breaks |\n"
)

// readDeaths reads the page.
func readDeaths(t *testing.T) *deathsPage {
	t.Helper()
	b, err := os.ReadFile(deathsFile)
	if err != nil {
		t.Fatal(err)
	}
	p := &deathsPage{cells: map[place]string{}}
	var found bool
	p.before, p.after, found = strings.Cut(string(b), deathsHeader)
	if !found {
		t.Fatalf("%s has no table %s", deathsFile, deathsHeader)
	}
	p.text = deathsHeader
	var kind, moment string
	for line := range strings.Lines(p.after) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		p.text += line
		columns := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|\n"), "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		if len(columns) != 3+len(dying) {
			continue
		}
		kind, moment = cmp.Or(columns[0], kind), cmp.Or(columns[1], moment)
		for _, effect := range strings.Split(columns[2], "; ") {
			for i, dies := range dying {
				p.cells[place{kind, moment, effectOf(effect), dies}] = columns[3+i]
			}
		}
	}
	p.after = strings.TrimPrefix(p.after, strings.TrimPrefix(p.text, deathsHeader))
	return p
}

// write writes the page with another table.
func (p *deathsPage) write(t *testing.T, table string) {
	t.Helper()
	if err := os.WriteFile(deathsFile, []byte(p.before+table+p.after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The effects as the table calls them.
var effectNames = map[string]string{"once": "`once`, tell", "ask": "`once`, ask", outsideCall: "any"}

func effectName(effect string) string { return cmp.Or(effectNames[effect], "`"+effect+"`") }

func effectOf(name string) string {
	for effect, n := range effectNames {
		if n == name {
			return effect
		}
	}
	return strings.Trim(name, "`")
}

// deathsTable writes the table. Effects of which the same becomes share a row.
func deathsTable(t *testing.T, cells map[place]map[string]cell) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(deathsHeader + "|" + strings.Repeat("---|", 3+len(dying)) + "\n")
	for _, kind := range mortalKinds {
		name := kind.name
		for _, moment := range kind.moments {
			label := moment
			for _, row := range deathRows(t, kind, moment, cells) {
				fmt.Fprintf(&b, "|%s|%s| %s |\n", padded(name), padded(label), row)
				name, label = "", ""
			}
		}
	}
	return b.String()
}

// padded returns what stands in a column; a space if it is that of the row above.
func padded(text string) string {
	if text == "" {
		return " "
	}
	return " " + text + " "
}

// deathRows are the rows of a moment.
func deathRows(t *testing.T, kind *mortalKind, moment string, cells map[place]map[string]cell) (rows []string) {
	t.Helper()
	var order []string
	effects := map[string][]string{}
	for _, effect := range kind.effects {
		var columns []string
		for _, dies := range dying {
			at := place{kind.name, moment, effect, dies}
			text := "–"
			if c, ok := cells[at]["file"]; ok {
				text = c.String()
			}
			if other, ok := cells[at]["redis"]; ok && other.String() != text {
				t.Errorf("%v: %s on a file, and %s on Redis", at, text, other)
			}
			columns = append(columns, text)
		}
		row := strings.Join(columns, " | ")
		if effects[row] == nil {
			order = append(order, row)
		}
		effects[row] = append(effects[row], effectName(effect))
	}
	for _, row := range order {
		rows = append(rows, strings.Join(effects[row], "; ")+" | "+row)
	}
	return rows
}
