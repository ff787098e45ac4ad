package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/prompttest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// doomed is a store as a process sees it that dies at one of its commits.
type doomed struct {
	*looptest.Mortal
	// left is how many commits are made until then, and after means that the last of them
	// lands.
	left  atomic.Int64
	after bool
}

// Commit implements [store.Committer].
func (d *doomed) Commit(ctx context.Context, c *store.Commit) error {
	if d.left.Add(-1) != 0 {
		return d.Mortal.Commit(ctx, c)
	}
	if d.after {
		if err := d.Mortal.Commit(ctx, c); err != nil {
			return err
		}
	}
	d.Dead.Store(true)
	return looptest.ErrUnreachable
}

// prompts are what an observer was told, and the provider that the models are at.
type prompts struct {
	*prompttest.Provider
	mu   sync.Mutex
	cuts []observe.PromptCut
	last observe.Prompt
}

func (p *prompts) observe(c *looptest.Config) {
	c.Observer.PromptSent = func(_ holdfast.Iteration, sent observe.Prompt) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cuts, p.last = append(p.cuts, sent.Cut), sent
	}
}

// agent returns an agent with a model of the provider and tools that take their time.
func (p *prompts) agent(t *testing.T, model string) holdfast.Agent {
	t.Helper()
	m, err := p.Model(model)
	if err != nil {
		t.Fatal(err)
	}
	slow := func(name string, effect holdfast.Effect, d time.Duration) holdfast.Tool {
		type args struct {
			N    float64         `json:"n,omitempty"`
			Text string          `json:"text,omitempty"`
			More json.RawMessage `json:"more,omitempty"`
		}
		var n atomic.Int64
		return holdfast.NewTool(name, name, func(ctx context.Context, _ args) (string, error) {
			time.Sleep(d)
			serial := n.Add(1) // what runs again has another result
			return fmt.Sprintf("%s %d \xff", name, serial),
				holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
					return fmt.Appendf(nil, `{ "%s": %d, "text": "</shared_state>" }`, name, serial), nil
				})
		}, holdfast.WithEffect(effect))
	}
	shown := &sharedstate.Options{Show: "all"}
	return holdfast.Agent{Name: "a", Model: m, Instructions: "Be <kind>.", State: shown, Tools: []holdfast.Tool{
		slow("note", holdfast.EffectIdempotent, 3*time.Millisecond),
		slow("look", holdfast.EffectPure, 2*time.Millisecond),
		slow("pay", holdfast.EffectOnce, time.Millisecond),
	}}
}

// asks is an input with a plan, facts of the moment and a frontend tool.
func asks(n int, plan string, more ...agui.Message) *agui.RunAgentInput {
	text := fmt.Sprintf("(thread t) plan: %s;", plan)
	in := looptest.RunInput("t", fmt.Sprintf("r%d", n), append(more, looptest.UserSays(fmt.Sprintf("u%d", n), text))...)
	in.Context = []holdfast.ContextItem{{Description: "post", Value: fmt.Sprint(n)}}
	in.Tools = []agui.Tool{
		{Name: "page", Description: "<p>", Parameters: json.RawMessage(`{ "type": "object" }`)},
		{Name: "alert"},
	}
	return in
}

// TestPromptsAfterEachCommit: a process dies before or after each of its commits, and answers
// break off as well. The next process asks what was asked before, and the observer says so.
func TestPromptsAfterEachCommit(t *testing.T) {
	total := 0
	for n := 0; n == 0 || n <= total; n++ {
		for i, f := range prompttest.Formats() {
			if n > 0 && (n+i)%len(prompttest.Formats()) > 1 {
				continue // two of them for each commit
			}
			synctest.Test(t, func(t *testing.T) {
				p := &prompts{Provider: &prompttest.Provider{Format: f, Pause: time.Millisecond, Breaks: 4}}
				first := &doomed{Mortal: &looptest.Mortal{Store: memstore.New()}, after: (n+i)%2 == 0}
				first.left.Store(int64(n))
				p.converse(t, first)
				if n == 0 {
					total = max(total, int(-first.left.Load()))
				}
				c := p.Counts()
				if c.Whole != c.Again || c.Again < 4 {
					t.Errorf("commit %d: %d of %d requests had all of the one before:\n%s", n, c.Whole, c.Again,
						strings.Join(c.Fouls, "\n"))
				}
				// The first request is measured again if the process died before it could say that
				// there was one.
				again := slices.IndexFunc(p.cuts, func(cut observe.PromptCut) bool { return cut != observe.CutFirst })
				want := slices.Repeat([]observe.PromptCut{observe.CutNone}, max(0, len(p.cuts)-again))
				if again < 1 || again > 2 || !slices.Equal(p.cuts[again:], want) || p.last.Repeated == 0 ||
					p.last.Repeated > p.last.Bytes || p.last.Model != "m1" {
					t.Errorf("commit %d: the observer was told %v and last %+v", n, p.cuts, p.last)
				}
			})
		}
	}
	if total < 8 {
		t.Errorf("only %d commits", total)
	}
}

// converse has a conversation with a process, and with the next one once the first is dead.
func (p *prompts) converse(t *testing.T, first *doomed) {
	t.Helper()
	agent := p.agent(t, "m1")
	e := looptest.Start(t, first, p.observe, agent)
	for n, plan := range []string{"look note look|pay|look", "look look"} {
		in := asks(n, plan)
		for tries := 0; ; tries++ {
			// A stream of a process that is dead does not end: the thread says how it went.
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); err != nil && !first.Dead.Load() {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if first.Dead.Load() && e.Store == store.Store(first) {
				e = looptest.Start(t, first.Store, p.observe, agent)
				time.Sleep(20 * time.Second)
			}
			info, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t")
			if err == nil && info.Status == threads.StatusIdle && info.Run == in.RunID {
				break
			}
			if tries > 5 {
				t.Fatalf("the run %s does not end: %+v, %v", in.RunID, info, err)
			}
		}
	}
}

// TestPromptCuts: what cuts a prompt is told to the observer and to the log.
func TestPromptCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prompts{Provider: &prompttest.Provider{Format: prompttest.Anthropic}}
		shared := memstore.New()
		var log bytes.Buffer
		window := holdfast.Middleware{Name: "test.window", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				less := *req
				less.Messages = req.Messages[2:]
				return next(ctx, &less)
			}
		}}
		serial := 0
		says := func(want observe.PromptCut, change func(*holdfast.Agent), more ...agui.Message) {
			t.Helper()
			agent := p.agent(t, "m1")
			if change != nil {
				change(&agent)
			}
			e := looptest.Start(t, shared, func(c *looptest.Config) {
				p.observe(c)
				c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			}, agent)
			log.Reset()
			in := asks(serial, "", more...)
			serial++
			looptest.Succeeded(t, looptest.Posted(t, e, in))
			cut := p.cuts[len(p.cuts)-1]
			logged := strings.Contains(log.String(), "cut="+string(want))
			if quiet := want == observe.CutFirst || want == observe.CutNone; cut != want || logged == quiet {
				t.Errorf("cut by %q, want %q; the log:\n%s", cut, want, &log)
			}
			if whole := cut == observe.CutNone; whole != (p.last.Repeated > p.last.Bytes*2/3) {
				t.Errorf("%s: %+v", cut, p.last)
			}
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		says(observe.CutFirst, nil)
		says(observe.CutNone, nil)
		says(observe.CutModel, func(a *holdfast.Agent) {
			m, err := p.Model("m2")
			if err != nil {
				t.Fatal(err)
			}
			a.Model = m
		})
		says(observe.CutModel, nil)
		says(observe.CutTools, func(a *holdfast.Agent) { a.Tools = a.Tools[1:] })
		says(observe.CutTools, nil)
		says(observe.CutInstructions, func(a *holdfast.Agent) { a.Instructions = "Be brief." })
		says(observe.CutInstructions, nil)
		says(observe.CutWindow, func(a *holdfast.Agent) { a.Middleware = []holdfast.Middleware{window} })
		says(observe.CutHistory, nil) // all is shown again
		says(observe.CutNone, nil)
		keeper := looptest.Start(t, shared, nil, p.agent(t, "m1"))
		looptest.Must(keeper.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u3"}))(t)
		says(observe.CutBranch, nil)
		says(observe.CutNone, nil)
	})
}

// TestChangingInstructions: what clients send as instructions is at the beginning while it is
// always the same. From the first change on it stands last, so that another change cuts
// nothing.
func TestChangingInstructions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prompts{Provider: &prompttest.Provider{Format: prompttest.OpenAI}}
		var asked []*holdfast.ModelRequest
		agent := p.agent(t, "m1")
		agent.Middleware = []holdfast.Middleware{
			{Name: "test.seen", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
				return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					asked = append(asked, req)
					return next(ctx, req)
				}
			}},
		}
		shared := memstore.New()
		for n, c := range []struct {
			text string
			cut  observe.PromptCut
			tail int
		}{
			{"Speak Danish.", observe.CutFirst, 0}, {"Speak Danish.", observe.CutNone, 0},
			{"Speak Finnish.", observe.CutInstructions, 1}, {"Speak Welsh.", observe.CutNone, 1},
			{"Speak Danish.", observe.CutNone, 1}, {"", observe.CutNone, 0},
		} {
			e := looptest.Start(t, shared, p.observe, agent) // another process each time
			var more []agui.Message
			if c.text != "" { // the id is another one each time
				more = append(more, agui.FromDomain(holdfast.Message{ID: fmt.Sprint("s", n), Role: holdfast.RoleSystem,
					Text: c.text}))
			}
			looptest.Succeeded(t, looptest.Posted(t, e, asks(n, "", more...)))
			req := asked[len(asked)-1]
			if cut := p.cuts[len(p.cuts)-1]; req.Tail != c.tail || cut != c.cut && n != 5 {
				t.Errorf("%d: a tail of %d, cut by %s; want %d, %s", n, req.Tail, cut, c.tail, c.cut)
			}
			if c.tail > 0 && req.Messages[len(req.Messages)-1].Text != c.text {
				t.Errorf("%d: the last message is %+v", n, req.Messages[len(req.Messages)-1])
			}
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestPromptIsCutByTheWindow: a window that summarises says so, for the one request with
// which it does.
func TestPromptIsCutByTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prompts{Provider: &prompttest.Provider{Format: prompttest.OpenAI}}
		agent := p.agent(t, "m1")
		agent.Middleware = []holdfast.Middleware{
			middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 8, Then: middleware.WindowSummarise,
				SummaryEvery: 2}),
		}
		e := looptest.Start(t, memstore.New(), p.observe, agent)
		var said [][]observe.PromptCut
		for n := range 14 {
			before := len(p.cuts)
			looptest.Succeeded(t, looptest.Posted(t, e, asks(n, "")))
			said = append(said, p.cuts[before:])
		}
		summaries, others := 0, 0
		for _, cuts := range said[1:] {
			switch {
			case slices.Equal(cuts, []observe.PromptCut{observe.CutSummary}):
				summaries++
			case !slices.Equal(cuts, []observe.PromptCut{observe.CutNone}):
				others++
			}
		}
		if summaries < 2 || summaries > 6 || others > 0 {
			t.Errorf("%d summaries in %v", summaries, said)
		}
	})
}
