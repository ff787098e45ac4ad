// Package redaction hides secrets in what tools return, what models say, and what is
// logged. A secret is text that matches a pattern; it is replaced by the name of the
// pattern.
package redaction

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

// NoticeRedacted is the notice of an iteration in which something was hidden: where (the
// model, or tools by name), the names of the patterns, and how many times.
const NoticeRedacted = "holdfast.redacted"

// New makes a middleware that hides secrets in what tools return, what the model says and
// what middleware and tools record and show, before any of it is stored, shown or logged. It leaves
// alone what a person writes and, unless the options say otherwise, the arguments of tool
// calls. It panics if the options are invalid.
//
// Several of them in one agent share one count.
//
// Notices: [NoticeRedacted].
func New(o Options) holdfast.Middleware {
	r, err := newRedactor(o)
	if err != nil {
		panic("redaction.New: " + err.Error())
	}
	return holdfast.Middleware{
		Name:           "holdfast.redaction",
		States:         []holdfast.State{value},
		Notices:        []string{NoticeRedacted},
		Run:            r.run,
		Model:          r.model,
		Tool:           r.tool,
		AfterIteration: tell,
	}
}

// run has everything in the run record and show through the redactor.
func (r *redactor) run(next holdfast.RunCall) holdfast.RunCall {
	return func(outer context.Context, it *holdfast.Iteration) (string, error) {
		ctx := holdfast.ContextWithRun(outer, &holdfast.RunContext{
			Record: func(ctx context.Context, a holdfast.Activity) error {
				return holdfast.Record(outer, a.Type, r.content(ctx, a.Type, a.Content))
			},
		})
		return next(activity.ContextWith(ctx, &activity.Run{
			Show: func(ctx context.Context, c activity.Change) error {
				c.Content = r.content(ctx, c.Type, c.Content)
				return c.Show(outer)
			},
			Step: func(ctx context.Context, name string) (func(), error) {
				h := hiding{redactor: r}
				name = h.text(name)
				h.count(ctx, "step")
				return activity.Step(outer, name)
			},
		}), it)
	}
}

// content hides secrets in the content of an activity.
func (r *redactor) content(ctx context.Context, activityType string, content json.RawMessage) json.RawMessage {
	h := hiding{redactor: r}
	content = h.json(content)
	h.count(ctx, "activity:"+activityType)
	return content
}

func (r *redactor) tool(next holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		result, err := next(ctx, tool, call)
		h := hiding{redactor: r}
		result.Text = h.text(result.Text)
		result.Parts = h.parts(result.Parts)
		err = h.err(err)
		h.count(ctx, "tool:"+call.Name)
		return result, err
	}
}

func (r *redactor) model(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			h := hiding{redactor: r}
			defer h.count(ctx, "model")
			s := &answerStream{text: textStream{hiding: &h}, reasoning: textStream{hiding: &h}, yield: yield}
			if r.arguments {
				s.calls = map[int]*textStream{}
			}
			for d, err := range next(ctx, req) {
				if err != nil {
					// Text that is held back may be the beginning of a secret, so it is
					// dropped.
					yield(holdfast.Delta{}, h.err(err))
					return
				}
				if !s.pass(d) {
					return
				}
			}
		}
	}
}

// tell sends the notice of an iteration.
func tell(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
	now, err := value.Load(ctx)
	if err != nil || len(now.Untold) == 0 {
		return
	}
	n := 0
	for _, count := range now.Untold {
		n += count
	}
	// Both fail only at the end of the run, and then the counts stay.
	_ = holdfast.Notify(ctx, NoticeRedacted,
		notice{Where: now.Where, Names: slices.Sorted(maps.Keys(now.Untold)), Count: n})
	_, _ = value.Update(ctx, func(s State) State { return State{Counts: s.Counts} })
}

type notice struct {
	Where []string `json:"where"`
	Names []string `json:"names"`
	Count int      `json:"count"`
}

// count adds what was hidden to the state of the run. A secret stays hidden even if it
// cannot be counted.
func (h *hiding) count(ctx context.Context, where string) {
	if len(h.counts) == 0 {
		return
	}
	_, _ = value.Update(ctx, func(s State) State {
		if !slices.Contains(s.Where, where) {
			s.Where = append(slices.Clone(s.Where), where)
		}
		s.Counts, s.Untold = added(s.Counts, h.counts), added(s.Untold, h.counts)
		return s
	})
}
