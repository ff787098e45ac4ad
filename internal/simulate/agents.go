package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// The agent of every server. It does what the user's message says: the calls of each
// iteration, separated by "|", as in "look,pay|save|".

// agents returns the agents of a server.
func (s *server) agents() []holdfast.Agent {
	other := holdfast.Agent{Name: "other", Model: holdfast.ModelFunc(s.model)}
	if s.variant.without {
		return []holdfast.Agent{other}
	}
	one := holdfast.Agent{
		Name:       "a",
		Revision:   s.variant.revision,
		Model:      holdfast.ModelFunc(s.model),
		Middleware: []holdfast.Middleware{s.middleware()},
	}
	for _, name := range toolNames {
		one.Tools = append(one.Tools, &tool{server: s, name: name})
	}
	if s.world.plan.extras.states {
		one.State = &sharedstate.Options{Schema: stateSchema}
		one.Tools = append(one.Tools, &tool{server: s, name: "note"}, &tool{server: s, name: "show"})
	}
	one.Tools = append(one.Tools, s.contracts()...)
	return []holdfast.Agent{one, other}
}

// middleware asks a person before "leave", counts in the ledger what models are asked, and is a
// seam before each tool.
func (s *server) middleware() holdfast.Middleware {
	kept := counts[s.variant.revision]
	return holdfast.Middleware{
		Name:   "simulate.seams",
		States: []holdfast.State{kept},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
			_, _ = kept.Update(ctx, func(c count) count { return count{c.N + 1} }) // any number can be kept
		},
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			for i, call := range b.Calls {
				if call.Name == "leave" {
					b.Ask(i, &holdfast.Interrupt{
						Reason:  holdfast.ReasonToolCall,
						Message: "May it?",
						ResponseSchema: json.RawMessage(`{"type":"object","required":["approved"],` +
							`"properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object"}}}`),
					})
				}
			}
			return nil
		},
		Model: s.counted,
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if call.Finished { // several results may have come at the same moment
					s.pass(ctx, "given "+call.Thread+" "+call.ID)
				} else {
					s.at(ctx, "start "+call.Name+" "+call.Thread+" "+call.ID)
				}
				return next(ctx, tool, call)
			}
		},
	}
}

// model answers as the history asks it to.
func (s *server) model(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		s.world.modelAsked(s, req)
		script := scriptOf(req.Messages)
		deltas := []holdfast.Delta{{Text: fmt.Sprintf("turn %d ", script.turn)}}
		end := holdfast.Delta{Finish: holdfast.FinishStop, Text: "of it"}
		for i, name := range script.calls {
			deltas = append(deltas, holdfast.Delta{Call: &holdfast.CallDelta{
				Index: i, ID: fmt.Sprintf("call_%d", i), Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, script.all+i),
			}})
			end = holdfast.Delta{Finish: holdfast.FinishToolCalls}
		}
		for _, d := range append(deltas, end) {
			switch s.at(ctx, "model "+req.Thread, broken, failed) {
			case broken:
				yield(holdfast.Delta{}, &holdfast.ModelError{Retryable: true, Err: holdfast.ErrTruncated})
				return
			case failed:
				yield(holdfast.Delta{}, &holdfast.ModelError{Err: errors.New("no")})
				return
			case dead:
				yield(holdfast.Delta{}, errors.Join(errLink, context.Cause(ctx)))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// tool is one of the tools.
type tool struct {
	server *server
	name   string
}

// Spec implements [holdfast.Tool].
func (t *tool) Spec() holdfast.ToolSpec {
	spec := holdfast.ToolSpec{
		Name:        t.name,
		Description: t.name,
		Effect:      effects[t.name],
		Parameters:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
	}
	if spec.Effect == holdfast.EffectQuery {
		spec.Query = t.query
	}
	if t.name == "confirm" {
		spec.InDoubt = holdfast.DoubtAsk
	}
	return spec
}

// Call implements [holdfast.Tool].
func (t *tool) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	if t.server.isDead() {
		return holdfast.ToolResult{}, errLink
	}
	t.server.world.started(t.server, &call)
	end, err := documented(ctx, &call)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	options := []string{failed}
	if effects[t.name] == holdfast.EffectOnce || effects[t.name] == holdfast.EffectQuery {
		options = append(options, unsure)
	}
	switch t.server.at(ctx, "tool "+t.name+" "+call.Thread+" "+call.ID, options...) {
	case dead:
		return holdfast.ToolResult{}, errors.Join(errLink, context.Cause(ctx))
	case failed:
		t.server.world.finished(&call)
		return holdfast.ToolResult{}, errors.New("it does not work")
	case unsure:
		return holdfast.ToolResult{}, fmt.Errorf("no answer: %w", holdfast.ErrOutcomeUnknown)
	}
	t.server.world.finished(&call)
	return holdfast.ToolResult{Text: t.name + doneText}, end()
}

// query says what became of a call.
func (t *tool) query(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
	switch t.server.at(ctx, "query "+t.name+" "+call.Thread+" "+call.ID, failed) {
	case dead:
		return holdfast.ToolResult{}, "", errors.Join(errLink, context.Cause(ctx))
	case failed:
		return holdfast.ToolResult{}, "", errors.New("it does not answer")
	}
	fate := t.server.world.fateOf(&call)
	return holdfast.ToolResult{Text: t.name + " was done"}, fate, nil
}

// contracts returns the tools whose calls are finished from outside.
func (s *server) contracts() (tools []holdfast.Tool) {
	for _, spec := range []holdfast.ToolSpec{
		{Name: "hand", Outside: &holdfast.Outside{
			FinishedBy: access.RoleUser,
			Result:     json.RawMessage(`{"type":"object","required":["by"]}`),
		}},
		{Name: "expire", Outside: &holdfast.Outside{ExpiresAfter: 3 * time.Second, Abandonable: true}},
	} {
		spec.Outside.Deliver = s.deliver
		tool, err := contract.Of(spec)
		if err != nil {
			panic(err) // the specification is ours
		}
		tools = append(tools, tool)
	}
	return tools
}

// deliver gives a call to the service.
func (s *server) deliver(ctx context.Context, call holdfast.OutsideCall) error {
	switch s.at(ctx, "deliver "+call.Call.Name+" "+call.Call.Thread+" "+call.Call.ID, failed, unsure) {
	case dead:
		return errors.Join(errLink, context.Cause(ctx))
	case failed:
		return errors.New("nobody answers")
	case unsure:
		s.world.delivered(s, &call)
		return errors.New("the answer was lost")
	}
	s.world.delivered(s, &call)
	return nil
}

// delivered takes in that the service has got a call.
func (w *World) delivered(s *server, call *holdfast.OutsideCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := call.Call
	if k := w.truth.of(one.Thread); k.process != s.process && k.strays(s) {
		return
	} else if k.process != s.process {
		w.violated("one owner starts tools", "%s hands out %s of %s, which belongs to %q", s.process, one.Name,
			one.Thread, k.process)
	}
	key := one.Thread + " " + one.ID
	h := w.truth.handed[key]
	if h == nil {
		h = &handed{thread: one.Thread, id: one.ID, tool: one.Name}
		w.truth.handed[key] = h
	}
	if h.taken != "" && !w.truth.of(one.Thread).rewound {
		w.violated("a finished tool never runs again", "%s %s is handed out after its result", h.tool, h.id)
	}
	h.token = call.URL.Reveal()
	w.seen("%s hands out %s %s in %s", s.name, h.tool, h.id, h.thread)
}
