package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// The agent of every server. It does what the user's message says: the calls of each
// iteration, separated by "|", as in "look,pay|save|".

// The tools, by name.
var effects = map[string]holdfast.Effect{
	"look":    holdfast.EffectPure,
	"save":    holdfast.EffectIdempotent,
	"pay":     holdfast.EffectOnce,
	"confirm": holdfast.EffectOnce, // a person is asked if a call is in doubt
	"order":   holdfast.EffectQuery,
	"leave":   holdfast.EffectOnce, // a person is asked first
}

// toolNames are the names, in order.
var toolNames = []string{"look", "save", "pay", "confirm", "order", "leave"}

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
	return []holdfast.Agent{one, other}
}

// middleware asks a person before "leave", counts in the ledger what models are asked, and is a
// seam before each tool.
func (s *server) middleware() holdfast.Middleware {
	return holdfast.Middleware{
		Name: "simulate.seams",
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			for i, call := range b.Calls {
				if call.Name == "leave" {
					b.Ask(i, &holdfast.Interrupt{
						Reason:  holdfast.ReasonToolCall,
						Message: "May it?",
						ResponseSchema: json.RawMessage(`{"type":"object","required":["approved"],` +
							`"properties":{"approved":{"type":"boolean"}}}`),
					})
				}
			}
			return nil
		},
		Model: s.counted,
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if !call.Finished {
					s.at(ctx, "start "+call.Name+" "+call.Thread+" "+call.ID)
				}
				return next(ctx, tool, call)
			}
		},
	}
}

// script is what a history asks the model to do next.
type script struct {
	turn  int // how many answers there are since the user's message
	calls []string
	all   int // how many calls the history has
}

// scriptOf reads a history.
func scriptOf(messages []holdfast.Message) (s script) {
	var turns []string
	for _, m := range messages {
		switch m.Role {
		case holdfast.RoleUser:
			s.turn, turns = 0, strings.Split(strings.TrimPrefix(m.Text, "do "), "|")
		case holdfast.RoleAssistant:
			s.turn++
			s.all += len(m.Calls)
		}
	}
	if s.turn < len(turns) && turns[s.turn] != "" {
		s.calls = strings.Split(turns[s.turn], ",")
	}
	return s
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
	return holdfast.ToolResult{Text: t.name + " is done"}, nil
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

// wellFormed returns what is wrong with a history; empty if nothing is. Each call has exactly
// one result, which follows it before the next answer or message of the user.
func wellFormed(messages []holdfast.Message) string {
	open := map[string]bool{}
	known := map[string]bool{}
	for _, m := range messages {
		switch m.Role {
		case holdfast.RoleTool:
			if !open[m.CallID] {
				return "a result of " + m.CallID + ", which is not open"
			}
			delete(open, m.CallID)
		case holdfast.RoleUser, holdfast.RoleAssistant:
			for id := range open {
				return "no result of " + id
			}
			for _, c := range m.Calls {
				if known[c.ID] {
					return "the call " + c.ID + " twice"
				}
				known[c.ID], open[c.ID] = true, true
			}
		}
	}
	for id := range open {
		return "no result of " + id
	}
	return ""
}

// idsOf returns the ids of a history.
func idsOf(messages []holdfast.Message) []string {
	var ids []string
	for _, m := range messages {
		if m.ID != "" && m.Role != holdfast.RoleSystem {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
