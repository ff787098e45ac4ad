package agenttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/server"
)

// Config is what a [Harness] runs. Only a model must be there.
type Config struct {
	// Model is asked for answers: [Say] makes one.
	Model holdfast.Model
	// Tools and Middleware are the agent's, in this order. The server's own limits
	// are around them, as in production.
	Tools      []holdfast.Tool
	Middleware []holdfast.Middleware
	// Agent is a whole agent to begin with: Model, if there is one, takes the place
	// of its own, and Tools and Middleware come after its own.
	Agent holdfast.Agent
	// Store is where threads are kept; default: in memory. The harness does not
	// close it. Two harnesses on one store each need a [Harness.Thread] of their own.
	Store holdfast.Store
	// Principal is who asks; default [server.LocalPrincipal].
	Principal holdfast.Principal
	// Now is the clock of what is stored; default time.Now, which in a bubble of
	// testing/synctest is the bubble's.
	Now func() time.Time
	// Server has limits and modes, like MaxIterations or SchemaChanges. The members
	// that are above, the log and the address are the harness's.
	Server server.Config
}

// Harness runs one agent in the test's process, without a network: what a client
// would post is given to the server's handler, and what it answers is a [Result].
// Its methods are for the test's goroutine; Crash is for all.
type Harness struct {
	t       testing.TB
	cfg     Config
	log     *logbook
	process *process
	posts   int
	threads map[threadID]*thread
	on      threadID

	mu      sync.Mutex
	started []holdfast.ToolCall // since the last result
}

// threadID is a thread and who owns it.
type threadID struct {
	who  holdfast.Principal
	name string
}

// thread is what a client remembers of a thread.
type thread struct {
	notices []Notice
	open    []Question
	// cut is where the stream of a run has broken off; nil if it has not.
	cut *cursor
}

type cursor struct{ run, event string }

// New starts a server with one agent, on a thread called "t". It ends with the
// test.
func New(t testing.TB, cfg Config) *Harness {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = memstore.New()
	}
	cfg.Principal = cmp.Or(cfg.Principal, server.LocalPrincipal())
	h := &Harness{t: t, cfg: cfg, log: &logbook{out: t.Output(), ends: map[string]chan struct{}{}}, threads: map[threadID]*thread{}}
	h.on = threadID{cfg.Principal, "t"}
	h.start()
	t.Cleanup(func() {
		h.process.kill()
		if err := h.process.wait(); err != nil {
			t.Errorf("agenttest: the server did not end: %v", err)
		}
	})
	return h
}

// start starts a process.
func (h *Harness) start() {
	h.t.Helper()
	a := h.cfg.Agent
	a.Name = cmp.Or(a.Name, "agent")
	if h.cfg.Model != nil {
		a.Model = h.cfg.Model
	}
	a.Tools = slices.Concat(a.Tools, h.cfg.Tools)
	for i, tool := range a.Tools {
		a.Tools[i] = &watched{Tool: tool, h: h}
	}
	a.Middleware = slices.Concat(a.Middleware, h.cfg.Middleware)
	cfg := h.cfg.Server
	cfg.Now, cfg.Addr = h.cfg.Now, ""
	cfg.Authenticate = func(*http.Request) (holdfast.Principal, error) { return h.on.who, nil }
	p, err := start(h.t.Context(), cfg, a, h.cfg.Store, h.log)
	if err != nil {
		h.t.Fatalf("agenttest: the server does not start: %v", err)
	}
	h.process = p
}

// Crash has the process die, as if it were killed: nothing is stored any more,
// contexts are cancelled, and streams break off. A hook, a tool or a [Turn] may call
// it. What is in the middle of something then is told so by its context, and should
// return soon; no hook, no tool and no model is called any more. [Harness.Restart]
// starts the next process.
//
// What a run has handed to the store before is stored first, so that a test is the
// same each time. In a bubble of testing/synctest that is exact; elsewhere it is
// waited for a moment.
func (h *Harness) Crash() {
	if !h.process.life.over() {
		h.process.store.rest()
	}
	h.process.kill()
}

// Restart has the process die, if it lives, and starts another one on the same
// store, which takes over what was running. [Harness.Resume] shows what comes of
// it. With arguments it is another deployment, whose middleware they are instead.
//
// What middleware keeps in a variable does not survive a crash, but in a test the
// variable does. To see that all of it is state, hand in a new one:
// h.Restart(quota.New(options)).
func (h *Harness) Restart(middleware ...holdfast.Middleware) {
	h.t.Helper()
	h.Crash()
	if err := h.process.wait(); err != nil {
		h.t.Fatalf("agenttest: the server did not end: %v", err)
	}
	if middleware != nil {
		h.cfg.Middleware = middleware
	}
	h.start()
}

// Thread has what follows happen on the thread of that name, new or not.
func (h *Harness) Thread(name string) { h.on.name = name }

// As has what follows be asked by this principal, on a thread of its own.
func (h *Harness) As(who holdfast.Principal) { h.on.who = who }

// thread is what is known of the thread.
func (h *Harness) thread() *thread {
	if h.threads[h.on] == nil {
		h.threads[h.on] = &thread{}
	}
	return h.threads[h.on]
}

// Run posts a user's message and returns when the run has ended, waits, or broke
// off.
func (h *Harness) Run(text string) *Result {
	h.t.Helper()
	id := fmt.Sprintf("user%d", h.posts+1)
	message := agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleUser, Text: text})
	return h.post(&agui.RunAgentInput{Messages: []agui.Message{message}})
}

// Resume goes on as a client would that knows no more: after a crash it reads on
// where the stream broke off, else it posts no messages, which resumes a run that
// has stopped, and shows one that waits or has ended.
func (h *Harness) Resume() *Result {
	h.t.Helper()
	if cut := h.thread().cut; cut != nil {
		return h.follow(cut)
	}
	return h.post(&agui.RunAgentInput{})
}

// Answer answers an open question with a payload, which is written as JSON.
func (h *Harness) Answer(interruptID string, payload any) *Result {
	h.t.Helper()
	return h.Answers(map[string]any{interruptID: payload})
}

// AnswerAll answers every question that the last result on this thread has left
// open, each with the same payload.
func (h *Harness) AnswerAll(payload any) *Result {
	h.t.Helper()
	answers := map[string]any{}
	for _, q := range h.openQuestions() {
		answers[q.ID] = payload
	}
	return h.Answers(answers)
}

// Answers answers several questions in one request: payloads by the questions' ids.
// A run goes on when all have an answer.
func (h *Harness) Answers(payloads map[string]any) *Result {
	h.t.Helper()
	in := &agui.RunAgentInput{}
	for id, payload := range payloads {
		in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: id, Status: agui.ResumeResolved, Payload: h.json(payload)})
	}
	slices.SortFunc(in.Resume, func(a, b agui.ResumeEntry) int { return cmp.Compare(a.InterruptID, b.InterruptID) })
	return h.post(in)
}

// Decline abandons questions without an answer: these, or all that are open.
func (h *Harness) Decline(interruptIDs ...string) *Result {
	h.t.Helper()
	if len(interruptIDs) == 0 {
		for _, q := range h.openQuestions() {
			interruptIDs = append(interruptIDs, q.ID)
		}
	}
	in := &agui.RunAgentInput{}
	for _, id := range interruptIDs {
		in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: id, Status: agui.ResumeCancelled})
	}
	return h.post(in)
}

func (h *Harness) openQuestions() []Question {
	h.t.Helper()
	open := h.thread().open
	if len(open) == 0 {
		h.t.Fatalf("agenttest: no question is open on the thread %s", h.on.name)
	}
	return open
}

// Log returns the server's log, a line each, without times: of all processes,
// while they lived.
func (h *Harness) Log() []string {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	return slices.Clone(h.log.lines)
}

// Notices returns the CUSTOM events that the results on this thread have shown:
// those of middleware, by [holdfast.Notify], and the server's own, whose names begin
// with "holdfast.".
func (h *Harness) Notices() []Notice { return slices.Clone(h.thread().notices) }
