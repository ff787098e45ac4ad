// Package states_test edits shared states at random: pages, tools and requests at once, while servers are killed
// and pages are loaded again.
package states_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// scene is a thread whose document is edited. Each change puts a mark of its own into it.
type scene struct {
	t    testing.TB
	db   store.Store
	rule string // of the agent, for conflicts
	// drops has a page lose one STATE_DELTA: what a watcher has is then wrong, and must be found.
	drops bool

	mu       sync.Mutex
	rng      *rand.Rand
	servers  [2]*server
	marks    int
	accepted map[string]bool // marks whose change was acknowledged
	unsure   map[string]bool // marks of which nobody knows
	titles   map[string]bool // that were ever written
	// dropped are marks of which the stream has said that the rule has dropped them.
	dropped  map[string]bool
	problems []string
}

// server is a process that may die.
type server struct {
	process *process.Process
	*looptest.Engine
}

// newScene returns a scene with two servers on a store.
func newScene(t testing.TB, db store.Store, seed uint64) *scene {
	s := &scene{
		t:        t,
		db:       db,
		rng:      rand.New(rand.NewPCG(seed, 1)),
		accepted: map[string]bool{},
		unsure:   map[string]bool{},
		titles:   map[string]bool{},
		dropped:  map[string]bool{},
	}
	s.rule = []string{sharedstate.ConflictRefuse, sharedstate.ConflictPage, sharedstate.ConflictAgent}[s.draw(3)]
	for i := range s.servers {
		s.servers[i] = s.serve()
	}
	return s
}

// draw returns a number below n.
func (s *scene) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

// mark returns a mark that no other change has.
func (s *scene) mark(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks++
	return fmt.Sprintf("%s%d", kind, s.marks)
}

// note notes what is known of a mark.
func (s *scene) note(in map[string]bool, mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[mark] = true
}

// wrong notes a problem.
func (s *scene) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// any returns one of the servers.
func (s *scene) any() *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[s.rng.IntN(len(s.servers))]
}

// kill kills one of the servers and starts another in its place.
func (s *scene) kill() {
	i, next := s.draw(len(s.servers)), s.serve()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[i].process.Kill()
	s.servers[i] = next
}

// end ends all servers.
func (s *scene) end() {
	for _, one := range s.servers {
		_ = process.End(context.Background(), one.Shutdown)
	}
}

// newID numbers ids. Those of fences differ in what cursors have of them.
func newID(prefix string) string {
	if prefix == "" {
		return fmt.Sprintf("%06d", looptest.Serial.Add(1))
	}
	return fmt.Sprintf("%s%08d", prefix, looptest.Serial.Add(1))
}

// serve starts a server.
func (s *scene) serve() *server {
	p := process.New(telling{s.db, s}, io.Discard)
	cfg := looptest.Settings(p.Store, p.Log, p.Agent(s.agent()))
	cfg.NewID = newID
	e, err := looptest.New(cfg)
	if err == nil {
		err = p.Start(context.Background(), e.Start, e.Shutdown)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &server{p, e}
}

// agent makes as many calls of its tool as the last message has dots, and then answers.
func (s *scene) agent() holdfast.Agent {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		calls := 0
		for _, m := range req.Messages {
			switch m.Role {
			case holdfast.RoleUser:
				calls = strings.Count(m.Text, ".")
			case holdfast.RoleTool:
				calls--
			}
		}
		return func(yield func(holdfast.Delta, error) bool) {
			if calls <= 0 {
				_ = yield(holdfast.Delta{Text: "done"}, nil) && yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
				return
			}
			mark := s.mark("tool")
			call := holdfast.Delta{Call: &holdfast.CallDelta{ID: "call" + mark, Name: "edit",
				Arguments: `{"mark":"` + mark + `"}`}}
			_ = yield(call, nil) && yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	return holdfast.Agent{
		Name:  "a",
		Model: model,
		State: &sharedstate.Options{Conflict: s.rule},
		Tools: []holdfast.Tool{holdfast.NewTool("edit", "edits",
			func(ctx context.Context, in struct{ Mark string }) (string, error) {
				wait.Pass(time.Duration(s.draw(3)) * time.Millisecond)
				return "edited " + in.Mark,
					holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
						return edited(state, func(doc map[string]any) { s.byTool(doc, in.Mark) })
					})
			})},
	}
}

// edited returns a document after a change.
func edited(state json.RawMessage, change func(doc map[string]any)) (json.RawMessage, error) {
	doc := map[string]any{}
	if err := json.Unmarshal(state, &doc); err != nil {
		return nil, err
	}
	change(doc)
	return json.Marshal(doc)
}

// byTool is what a tool does with the document.
func (s *scene) byTool(doc map[string]any, mark string) {
	list, _ := doc["list"].([]any)
	doc["list"] = append(list, mark)
	tool, _ := doc["tool"].(map[string]any)
	for had := range tool {
		if len(tool) > 2 {
			delete(tool, had)
		}
	}
	tool[mark] = map[string]any{"made": true}
	if len(mark)%2 == 0 {
		s.note(s.titles, mark)
		doc["title"] = mark
	}
}

// patch changes the state by a request.
func (s *scene) patch() {
	mark := s.mark("patch")
	operations := `[{"op":"add","path":"/list/-","value":"` + mark + `"}`
	if s.draw(3) == 0 {
		s.note(s.titles, mark)
		operations += `,{"op":"add","path":"/title","value":"` + mark + `"}`
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := upkeep.States{Keeper: s.any().Keeper}.Patch(ctx, looptest.Alice, "t",
		threads.StatePatch{Patch: json.RawMessage(operations + "]")})
	if err != nil {
		s.note(s.unsure, mark)
		return
	}
	s.note(s.accepted, mark)
}

// document returns the document of a version as the store has it.
func (s *scene) document(version string) string {
	doc, err := thread.Reader{Store: s.db}.Shared(context.Background(), looptest.KeyOf("t"), version)
	if err != nil {
		s.wrong("the version %q cannot be read: %v", version, err)
	}
	return string(doc)
}

// ended returns the document with which the last run has ended.
func (s *scene) ended() string {
	newest, err := s.db.Values(context.Background(), looptest.KeyOf("t"), store.KindCheckpoint, "", 1)
	if err != nil || len(newest) == 0 {
		s.wrong("there is no checkpoint: %v", err)
		return ""
	}
	cp, err := thread.DecodeCheckpoint(newest[0].Data)
	if err != nil {
		s.wrong("the checkpoint: %v", err)
		return ""
	}
	return s.document(cp.State.Shared)
}

// settled has all pages load a thread of which nobody works any more, and returns its document.
func (s *scene) settled(pages []*page) string {
	for range 100 {
		before := s.version()
		for _, p := range pages {
			p.load()
		}
		// A run that a death had cut off may have gone on between two of the pages.
		if before == s.version() {
			return s.document(before)
		}
	}
	s.wrong("the thread does not come to rest")
	return ""
}

// version returns the version of the document that the thread has now.
func (s *scene) version() string {
	head, err := thread.Reader{Store: s.db}.Head(context.Background(), looptest.KeyOf("t"))
	if err != nil {
		s.wrong("the thread cannot be read: %v", err)
		return ""
	}
	return head.State.Shared
}

// check compares what all have in the end, and looks for the marks of all changes.
func (s *scene) check(pages []*page) {
	doc := s.settled(pages)
	if doc == "" {
		return
	}
	for _, p := range pages {
		if !jsonpatch.Equal([]byte(p.doc), []byte(doc)) {
			s.wrong("page %s ends with %s, and the thread with %s", p.name, p.doc, doc)
		}
	}
	var got struct {
		List  []string                     `json:"list"`
		Title string                       `json:"title"`
		Page  map[string]map[string]string `json:"page"`
	}
	if err := json.Unmarshal([]byte(doc), &got); err != nil {
		s.wrong("the document: %v", err)
	}
	s.results()
	found := map[string]int{}
	for _, mark := range got.List {
		found[mark]++
	}
	for mark := range s.accepted {
		if found[mark] != 1 && (found[mark] > 1 || !s.dropped[mark]) {
			s.wrong("the change %s is there %d times", mark, found[mark])
		}
	}
	for mark, n := range found {
		if !s.accepted[mark] && (!s.unsure[mark] || n > 1) {
			s.wrong("the change %s, which was not accepted, is there %d times", mark, n)
		}
	}
	if got.Title != "" && !s.titles[got.Title] {
		s.wrong("the title is %q", got.Title)
	}
	for _, p := range pages {
		for key, value := range p.fields {
			if is := got.Page[p.name][key]; is != value && !s.unsure[is] && !s.dropped[value] {
				s.wrong("of page %s %s is %q, want %q", p.name, key, got.Page[p.name][key], value)
			}
		}
	}
}

// results notes the marks of the calls that have a result, on whichever branch.
func (s *scene) results() {
	all, err := s.db.Messages(context.Background(), looptest.KeyOf("t"))
	if err != nil {
		s.wrong("the messages cannot be read: %v", err)
	}
	for _, m := range all {
		var told struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		}
		if err := json.Unmarshal(m.Data, &told); err != nil {
			s.wrong("a message: %v", err)
		}
		text, _ := told.Content.(string)
		if mark, is := strings.CutPrefix(text, "edited "); is && told.Role == string(holdfast.RoleTool) {
			s.note(s.accepted, mark)
		}
	}
}
