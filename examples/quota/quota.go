package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// Options configure the quota. In an agents file they are under example.quota.
type Options struct {
	// Tools are the tools that cost something.
	Tools []string `json:"tools"`
	// PerThread is how many calls of each tool a thread may make; 0 means 3.
	PerThread int `json:"perThread"`
}

func (o Options) validate() error {
	switch {
	case len(o.Tools) == 0:
		return errors.New("tools is empty: name the tools that cost something")
	case o.PerThread < 0:
		return fmt.Errorf("perThread is %d: write 1 or more, or leave it out for 3", o.PerThread)
	}
	return nil
}

// Spent is the state: what a thread has used up.
type Spent struct {
	// ByTool counts the calls that were paid for, by tool name.
	ByTool map[string]int `json:"byTool,omitempty"`
}

// spentV1 is the state as version 1 wrote it, when lookup was the only tool.
type spentV1 struct {
	Lookups int `json:"lookups"`
}

// spentKey reads and writes the state. A renamed member would be misread, hence version 2
// and a migration to it.
var spentKey = state.Register(state.Spec[Spent]{
	Name: "example.quota", Version: 2,
	Migrations: map[int]state.Migration{1: state.Migrate(func(old spentV1) (Spent, error) {
		return Spent{ByTool: map[string]int{"lookup": old.Lookups}}, nil
	})},
})

// noticeUsedUp is the notice of a call beyond the quota.
const noticeUsedUp = "example.quota_used_up"

// Quota limits how often a thread may call tools that cost something. Calls beyond the
// quota are denied, with a text that tells the model why.
func Quota(o Options) holdfast.Middleware {
	q := &quota{paid: slices.Clone(o.Tools), limit: cmp.Or(o.PerThread, 3)}
	return holdfast.Middleware{
		Name:           "example.quota",
		States:         []holdfast.State{spentKey},
		Notices:        []string{noticeUsedUp},
		Batch:          q.batch,
		AfterIteration: q.after,
	}
}

// quota has only what was configured; everything that it remembers is in the state.
type quota struct {
	paid  []string
	limit int
}

// batch denies calls beyond the quota, before any of the calls starts.
func (q *quota) batch(ctx context.Context, b *holdfast.Batch) error {
	spent, err := spentKey.Load(ctx)
	if err != nil {
		return err
	}
	asked := map[string]int{}
	for i, call := range b.Calls {
		if !slices.Contains(q.paid, call.Name) {
			continue
		}
		if spent.ByTool[call.Name]+asked[call.Name] < q.limit {
			asked[call.Name]++
			continue
		}
		b.Deny(i, fmt.Sprintf("Not run: the quota of %d calls of %s in this conversation is "+
			"used up. Answer without it.", q.limit, call.Name))
		if err := holdfast.Notify(ctx, noticeUsedUp, map[string]any{"tool": call.Name, "limit": q.limit}); err != nil {
			return err
		}
	}
	return nil
}

// after counts the calls that were actually run. The count is stored with the iteration's
// checkpoint, so a crash neither loses nor doubles it.
func (q *quota) after(ctx context.Context, _ *holdfast.Iteration, done *holdfast.IterationResult) {
	_, err := spentKey.Update(ctx, func(s Spent) Spent {
		byTool := maps.Clone(s.ByTool) // others read the old map
		if byTool == nil {
			byTool = map[string]int{}
		}
		for _, c := range done.Calls {
			if slices.Contains(q.paid, c.Call.Name) && !c.Result.NotRun {
				byTool[c.Call.Name]++
			}
		}
		return Spent{ByTool: byTool}
	})
	if err != nil {
		panic(err) // the server logs and counts it, and the run continues
	}
}

// Kind lets an agents file name the quota.
func Kind() holdfast.MiddlewareKind {
	return holdfast.MiddlewareKind{Name: "example.quota", New: func(raw json.RawMessage) (holdfast.Middleware, error) {
		var o Options
		if err := holdfast.DecodeOptions(raw, &o); err != nil {
			return holdfast.Middleware{}, err
		}
		if err := o.validate(); err != nil {
			return holdfast.Middleware{}, err
		}
		return Quota(o), nil
	}}
}
