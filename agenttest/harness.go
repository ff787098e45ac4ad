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
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// The harness: a server with one agent in the test's process. Here are its
// configuration, its life (New, Crash, Restart), and what a test can ask of it; what
// comes back is in result.go.

// Config is what a [Harness] runs. Only a model is required.
type Config struct {
	// Model answers the agent's conversations: [Say] makes one.
	Model holdfast.Model
	// Tools are the agent's tools.
	Tools []holdfast.Tool
	// Toolsets have further tools, such as those of an MCP server that the test has opened, or
	// of a [Toolset] in its place.
	Toolsets []holdfast.Toolset
	// Middleware is the agent's middleware, the first outermost. The server's own
	// limits are around it, as in production.
	Middleware []holdfast.Middleware
	// FrontendTools are the tools that the frontend offers with every request. A run that calls
	// one ends, with the call in [Result.FrontendCalls]; [Harness.Deliver] sends its result.
	FrontendTools []holdfast.ToolSpec
	// Agent is a whole agent to start from: Model, if set, replaces its model, and
	// Tools, Toolsets and Middleware are added after its own.
	Agent holdfast.Agent
	// Store keeps the threads; the default is a store in memory. The harness does not
	// close it. Two harnesses on one store each need a [Harness.Thread] of their own.
	Store store.Store
	// Principal is the caller; default [server.LocalPrincipal].
	Principal holdfast.Principal
	// Now is the clock for stored times; default time.Now, which in a bubble of
	// testing/synctest is the bubble's clock.
	Now func() time.Time
	// Server has limits and modes, such as MaxIterations or SchemaChanges. The harness
	// sets the members that this struct has, the log and the address.
	Server server.Config
}

// Harness runs one agent in the test's process, without a network: it passes what a
// client would post to the server's handler, and turns the response into a [Result].
// Only Crash may be called from any goroutine; the other methods are for the test's.
type Harness struct {
	t       testing.TB
	cfg     Config
	log     *process.Log
	process *process.Process
	server  *server.Server
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

// thread is what a client remembers about a thread.
type thread struct {
	notices []Notice
	open    []Question
	// cut is where the stream of a run broke off; nil if it did not.
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
	h := &Harness{
		t:       t,
		cfg:     cfg,
		log:     &process.Log{Out: t.Output()},
		threads: map[threadID]*thread{},
	}
	h.on = threadID{cfg.Principal, "t"}
	h.start()
	t.Cleanup(func() {
		h.process.Kill()
		if err := h.process.Wait(); err != nil {
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
	a.Toolsets = slices.Concat(a.Toolsets, h.cfg.Toolsets)
	for i, set := range a.Toolsets {
		a.Toolsets[i] = &process.Toolset{
			Toolset: set,
			Wrap:    func(tool holdfast.Tool) holdfast.Tool { return &watched{Tool: tool, h: h} },
		}
	}
	a.Middleware = slices.Concat(a.Middleware, h.cfg.Middleware)
	cfg := h.cfg.Server
	cfg.Now, cfg.Addr = h.cfg.Now, ""
	cfg.Authenticate = func(*http.Request) (holdfast.Principal, error) { return h.on.who, nil }
	p := process.New(h.cfg.Store, h.log)
	cfg.Agents, cfg.Log = []holdfast.Agent{p.Agent(a)}, p.Log
	// Like a program's own store, it is no more than a Store.
	cfg.OpenStore = func() (store.Store, error) { return struct{ store.Store }{p.Store}, nil }
	s, err := server.New(cfg)
	if err == nil {
		err = p.Start(h.t.Context(), s.StartEngine, s.Shutdown)
	}
	if err != nil {
		h.t.Fatalf("agenttest: the server does not start: %v", err)
	}
	h.process, h.server = p, s
}

// Crash makes the process die as if it were killed: from then on nothing is stored,
// contexts are cancelled and streams break off. A hook, a tool or a [Turn] may call
// it. Functions that are still running see it in their context and should return
// soon; no other hook, tool or model is called. [Harness.Restart] starts the next
// process.
//
// Commits that a run has already passed to the store are stored first, so that a test
// gives the same result each time. In a bubble of testing/synctest this is exact;
// elsewhere Crash waits a moment for them.
func (h *Harness) Crash() { h.process.Crash() }

// Restart kills the process, if it is alive, and starts another one on the same
// store, which takes over what was running. [Harness.Resume] shows the outcome.
// Arguments replace the middleware, as in a new deployment.
//
// In production, a crash loses what a middleware keeps in a variable, but in a test
// the variable survives. To check that everything needed is in states, pass a new
// middleware: h.Restart(quota.New(options)).
func (h *Harness) Restart(middleware ...holdfast.Middleware) {
	h.t.Helper()
	h.Crash()
	if err := h.process.Wait(); err != nil {
		h.t.Fatalf("agenttest: the server did not end: %v", err)
	}
	if middleware != nil {
		h.cfg.Middleware = middleware
	}
	h.start()
}

// Thread selects the thread for the following calls; it may be new.
func (h *Harness) Thread(name string) { h.on.name = name }

// As makes this principal the caller of the following calls. Each principal has
// threads of its own.
func (h *Harness) As(who holdfast.Principal) { h.on.who = who }

// thread returns what is known about the selected thread.
func (h *Harness) thread() *thread {
	if h.threads[h.on] == nil {
		h.threads[h.on] = &thread{}
	}
	return h.threads[h.on]
}

// Run posts a user's message and returns when the run has ended, waits or was cut off.
func (h *Harness) Run(text string) *Result {
	h.t.Helper()
	id := fmt.Sprintf("user%d", h.posts+1)
	message := agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleUser, Text: text})
	return h.post(&agui.RunAgentInput{Messages: []agui.Message{message}})
}

// Resume does what a client does that knows nothing new. After a crash it continues
// the stream where it broke off. Otherwise it posts no messages, which resumes a
// stopped run and shows one that waits or has ended.
func (h *Harness) Resume() *Result {
	h.t.Helper()
	if cut := h.thread().cut; cut != nil {
		return h.follow(cut)
	}
	return h.post(&agui.RunAgentInput{})
}

// Answer answers the only open question with a payload, which is written as JSON.
func (h *Harness) Answer(interruptID string, payload any) *Result {
	h.t.Helper()
	return h.Answers(map[string]any{interruptID: payload})
}

// AnswerAll answers every question that the last result on this thread left open,
// each with the same payload.
func (h *Harness) AnswerAll(payload any) *Result {
	h.t.Helper()
	answers := map[string]any{}
	for _, q := range h.openQuestions() {
		answers[q.ID] = payload
	}
	return h.Answers(answers)
}

// Answers answers several questions in one request: the payloads by question id. All open
// questions have to be among them, or the request is refused (answers_missing).
func (h *Harness) Answers(payloads map[string]any) *Result {
	h.t.Helper()
	in := &agui.RunAgentInput{}
	for id, payload := range payloads {
		in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: id, Status: agui.ResumeResolved,
			Payload: h.json(payload)})
	}
	slices.SortFunc(in.Resume, func(a, b agui.ResumeEntry) int { return cmp.Compare(a.InterruptID, b.InterruptID) })
	return h.post(in)
}

// Decline abandons these questions, or all open ones, without an answer.
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

// Log returns the lines of the server's log, without times, from all processes while
// they were alive.
func (h *Harness) Log() []string { return h.log.Lines() }

// Notices returns the CUSTOM events in the results on this thread: those that
// middleware sent with [holdfast.Notify], and the server's own, whose names start
// with "holdfast.".
func (h *Harness) Notices() []Notice { return slices.Clone(h.thread().notices) }
