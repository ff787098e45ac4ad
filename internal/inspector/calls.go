package inspector

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Nothing is stored of a call for those who look at it later but what its run's log has: the
// events that begin and end it, when they were recorded, and by which process. Its key follows
// from its thread and run.

// Calls returns the tool calls of a run or, if run is empty, of up to limit runs of the
// thread: those before the given one (empty: the newest).
func (in *Inspector) Calls(
	ctx context.Context, who holdfast.Principal, id, run, before string, limit int,
) (*threads.CallList, error) {
	t, err := in.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	ids, next := []string{run}, ""
	if run == "" {
		if ids, next, err = in.runs(ctx, who, id, before, limit); err != nil {
			return nil, err
		}
	}
	hist, err := in.read.History(ctx, t.Key, t.State.Leaf)
	if err != nil {
		return nil, err
	}
	c := &calling{t: t, hist: hist, places: map[string]int{}}
	for _, id := range ids {
		if err := in.readCalls(ctx, c, id); err != nil {
			return nil, err
		}
	}
	w, err := in.working(ctx, t)
	if err != nil {
		return nil, err
	}
	return &threads.CallList{Calls: c.complete(w), Next: next}, nil
}

// runs returns the ids of runs, the oldest first, and the one before which there are more.
func (in *Inspector) runs(
	ctx context.Context, who holdfast.Principal, id, before string, limit int,
) (ids []string, next string, err error) {
	runs, err := in.cfg.Runs(ctx, who, id, before, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(runs) > limit {
		runs = runs[:limit]
		next = runs[limit-1].ID
	}
	for i := range runs {
		ids = append(ids, runs[i].ID)
	}
	slices.Reverse(ids)
	return ids, next, nil
}

// readCalls adds the calls of one run.
func (in *Inspector) readCalls(ctx context.Context, c *calling, run string) error {
	rec, err := in.read.Run(ctx, c.t.Key, run)
	if err != nil {
		return err
	}
	end, err := in.read.RunEnd(ctx, c.t.Key, run)
	if err != nil {
		return err
	}
	records, err := in.read.Landmarks(ctx, c.t.Key, rec, end)
	if err != nil {
		return err
	}
	c.rec, c.effect, c.since = rec, in.effects(rec), time.Time{}
	for i := range records {
		c.add(&records[i])
	}
	return nil
}

// calling is the calls of a thread while its logs are read.
type calling struct {
	t      *thread.Thread
	hist   *thread.History
	list   []threads.Call
	places map[string]int // of the calls in list

	rec    *thread.Run // the one that is read
	effect func(tool string) string
	since  time.Time // when its owner began, or went on
}

// add reads a record.
func (c *calling) add(r *store.Record) {
	switch agui.TypeOf(r.Data) {
	case agui.TypeRunStarted, agui.TypeCustom, agui.TypeToolCallStart, agui.TypeToolCallEnd, agui.TypeToolCallResult:
	default:
		return
	}
	ev, err := thread.EventOf(r.Data)
	if err != nil {
		return // what is damaged is left out; others report it
	}
	switch ev := ev.(type) {
	case agui.RunStarted:
		c.since = timeOf(ev.Timestamp)
	case agui.Custom:
		if ev.Name == "holdfast.takeover" {
			c.since = timeOf(ev.Timestamp)
		}
	case agui.ToolCallStart:
		if c.hist.Calls[ev.ToolCallID] { // else it was taken back
			call := c.at(ev.ToolCallID)
			call.Tool, call.Message, call.Run, call.Process = ev.ToolCallName, ev.ParentMessageID, c.rec.ID,
				c.process(r.Tag)
			call.Effect = c.effect(call.Tool)
		}
	case agui.ToolCallEnd:
		if c.hist.Calls[ev.ToolCallID] {
			c.at(ev.ToolCallID).StartedAt = timeOf(ev.Timestamp)
		}
	case agui.ToolCallResult:
		c.end(&ev, c.process(r.Tag))
	}
}

// at returns the call with the id.
func (c *calling) at(id string) *threads.Call {
	i, there := c.places[id]
	if !there {
		i, c.places[id] = len(c.list), len(c.list)
		c.list = append(c.list, threads.Call{ID: id, Run: c.rec.ID, Attempts: 1})
	}
	return &c.list[i]
}

// end reads a result.
func (c *calling) end(ev *agui.ToolCallResult, process string) {
	call := c.at(ev.ToolCallID)
	facts, mark := thread.FactsOf(ev)
	call.Result, call.EndedAt, call.Process = ev.MessageID, timeOf(ev.Timestamp), process
	call.Failed, call.Code, call.Key = mark.Failed, mark.Code, facts.Key
	if call.Attempts = max(facts.Attempts, 1); mark.NotRun {
		call.Attempts = 0
	}
	if c.since.After(call.StartedAt) {
		call.StartedAt = c.since
	}
	if call.Tool == "" { // it was made in a run that is not read
		call.Tool, call.Run = c.made(ev.ToolCallID), ""
		call.Effect = c.effect(call.Tool)
	}
}

// made returns the tool of a call that a message makes.
func (c *calling) made(id string) string {
	for i := range c.hist.Path {
		for _, made := range c.hist.Path[i].ToolCalls {
			if made.ID == id {
				return made.Function.Name
			}
		}
	}
	return ""
}

// process returns the process that has written records with the tag.
func (c *calling) process(tag string) string {
	for _, p := range c.rec.Processes {
		if p.Tag == tag {
			return p.Process
		}
	}
	return ""
}

// complete returns the calls, with what does not follow from their logs: how far the open ones
// have come, results that came with a request, and keys.
func (c *calling) complete(w *working) []threads.Call {
	results := map[string]*agui.Message{}
	for i := range c.hist.Path {
		if m := &c.hist.Path[i]; m.ToolCallID != "" {
			results[m.ToolCallID] = m
		}
	}
	for i := range c.list {
		call := &c.list[i]
		if m := results[call.ID]; m != nil && call.Result == "" {
			mark := thread.MarkOf(m)
			if call.Result, call.Failed, call.Code = m.ID, mark.Failed, mark.Code; mark.NotRun {
				call.Attempts = 0
			}
		}
		if open := c.t.State.Call(call.ID); open != nil && call.Result == "" {
			now := w.open(open)
			call.Effect, call.Key, call.Attempts = now.Effect, now.Key, now.Attempts
			if !now.StartedAt.IsZero() {
				call.StartedAt = now.StartedAt
			}
		}
		switch {
		case call.Effect == frontend:
			call.Key = ""
		case call.Key == "" && call.Run != "":
			call.Key = c.t.State.CallKey(c.t.Key, c.t.Head.User, &thread.Call{ID: call.ID, Run: call.Run})
		}
	}
	if c.list == nil {
		return []threads.Call{}
	}
	return c.list
}

// timeOf returns the time of an event, in milliseconds since 1970; zero if it has none.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
