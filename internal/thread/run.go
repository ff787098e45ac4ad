package thread

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The two records of a run, how it began and how it ended, and what people see of them.

// Run is how a run began. It is written with the commit that accepts the run, and again by a
// takeover that goes on with another revision of the agent.
type Run struct {
	Format int    `json:"dataFormat"` // of this value
	ID     string `json:"id"`         // chosen by the client
	Agent  string `json:"agent"`      // name of the agent that runs
	// Revision is that of the agent that the run is with; empty if the agent has none.
	Revision string `json:"revision,omitempty"`
	User     string `json:"user"` // who started it
	// Hash is that of the input. The same run id with the same input attaches.
	Hash string `json:"hash"`
	// Continues is the id of the stopped or interrupted run that this one continues.
	Continues string `json:"continues,omitempty"`
	// ParentRunID is the client's, for its own use.
	ParentRunID string `json:"parentRunId,omitempty"`
	// Traceparent is the W3C trace context of the request that began the run, in the form of
	// version 00; package http reads it, and it goes with every call of a tool or a model.
	Traceparent string `json:"traceparent,omitempty"`
	// After is the last record before the run's first.
	After store.Cursor `json:"after"`
	// StartedAt is when the run was accepted.
	StartedAt time.Time `json:"startedAt"`
	// Durability is what the store's commits survived then, if that was known.
	Durability store.Level `json:"durability,omitempty"`
	// Processes are those that have owned the run, the first one first.
	Processes []RunProcess `json:"processes,omitempty"`

	// Instructions, Tools, Context and ForwardedProps are the request's. They hold for
	// this run only and are no part of the history.
	Instructions   []json.RawMessage      `json:"instructions,omitempty"`
	Tools          []agui.Tool            `json:"tools,omitempty"`
	Context        []holdfast.ContextItem `json:"context,omitempty"`
	ForwardedProps json.RawMessage        `json:"forwardedProps,omitempty"`
}

// RunProcess is a process that has owned a run.
type RunProcess struct {
	// Process is the process's id.
	Process string `json:"process"`
	// Epoch is that of the fence under which it has run.
	Epoch uint64 `json:"epoch"`
	// Tag is what the cursors of the records that it has written end with.
	Tag string `json:"tag"`
	// Since is when it became the owner.
	Since time.Time `json:"since"`
}

// maxProcesses bounds how many processes a run names, so that its record does not grow for
// ever; the newest stay, and the first.
const maxProcesses = 50

// OwnedBy notes that the commit c makes the process the run's owner.
func (rec *Run) OwnedBy(c *store.Commit) {
	list := append(slices.Clip(rec.Processes), RunProcess{c.Process, c.Fence.Epoch, c.Fence.Tag(), c.UpdatedAt.UTC()})
	if len(list) > maxProcesses {
		list = slices.Delete(list, 1, 2)
	}
	rec.Processes = list
}

// Owner returns the process that has become the owner last; empty for a run of a version that did not
// note it.
func (rec *Run) Owner() string {
	if n := len(rec.Processes); n > 0 {
		return rec.Processes[n-1].Process
	}
	return ""
}

// Takeover returns the value of the event that says that the commit c takes the thread over
// from the owner that the head names.
func Takeover(from *store.Head, c *store.Commit, iteration int, reason string) map[string]any {
	value := map[string]any{
		"epoch":     c.Fence.Epoch,
		"iteration": iteration,
		"reason":    reason,
		"process":   c.Process,
		"outageMs":  max(c.UpdatedAt.Sub(from.UpdatedAt).Milliseconds(), 0),
	}
	if from.Process != "" {
		value["from"] = from.Process
	}
	return value
}

// RunEnd is how a run ended.
type RunEnd struct {
	Format  int              `json:"dataFormat"`     // of this value
	Outcome holdfast.Outcome `json:"outcome"`        // one of the four stored ones
	Code    string           `json:"code,omitempty"` // the error's, if it ended in one
	Text    string           `json:"text,omitempty"` // what a person reads about it
	EndedAt time.Time        `json:"endedAt"`        // when it ended
	// Last is the number of the run's last record.
	Last uint64 `json:"last"`
	// ContinuedBy is the id of the run that resumed this one.
	ContinuedBy string `json:"continuedBy,omitempty"`
	// Usage is what the run has used, by provider and model.
	Usage []holdfast.Usage `json:"usage,omitempty"`
}

// Public returns what the thread's owner may see of a run. o is zero for one that runs.
func (rec *Run) Public(o RunEnd) threads.Run {
	run := threads.Run{
		ID:          rec.ID,
		Agent:       rec.Agent,
		Revision:    rec.Revision,
		StartedAt:   rec.StartedAt,
		Durability:  string(rec.Durability),
		EndedAt:     o.EndedAt,
		Outcome:     o.Outcome,
		Code:        o.Code,
		Text:        o.Text,
		Continues:   rec.Continues,
		ContinuedBy: o.ContinuedBy,
		ParentRunID: rec.ParentRunID,
	}
	if o.Last > rec.After.Number {
		run.Records = o.Last - rec.After.Number
	}
	run.Usage = PublicUsage(o.Usage)
	for _, p := range rec.Processes {
		run.Processes = append(run.Processes, threads.RunProcess(p))
	}
	return run
}

// PutRunEnd adds to the commit c how the run ended.
func PutRunEnd(c *store.Commit, run string, o RunEnd) {
	o.Format = FormatBefore
	c.Put = append(c.Put, store.Value{Kind: store.KindOutcome, ID: run, Data: MustJSON(o)})
}

// PublicUsage returns usage as it is shown, without what it costs.
func PublicUsage(usage []holdfast.Usage) (list []threads.Usage) {
	for _, u := range usage {
		list = append(list, threads.Usage{Usage: u})
	}
	return list
}

// TakenBack is which call ids were shown and then taken back, with an answer that could
// not be finished. The log still shows them, but no message has them, so only the head
// knows that they must not be used again.
type TakenBack struct {
	// Shown are those ids.
	Shown []string `json:"shownCalls,omitempty"`
	// Unlisted means that there are others, which are not known or would be too many to
	// keep. Then no id that a model chooses is used any more.
	Unlisted bool `json:"shownUnlisted,omitempty"`
}

// maxShown bounds Shown, so that the head does not grow with the thread.
const maxShown = 16

// TakeBack notes that calls with these ids were shown and are taken back.
func (b *TakenBack) TakeBack(ids ...string) {
	for _, id := range ids {
		if b.Used(id) {
			continue
		}
		if len(b.Shown) == maxShown {
			*b = TakenBack{Unlisted: true}
			return
		}
		b.Shown = append(slices.Clip(b.Shown), id)
	}
}

// Used reports whether an id may have been taken back.
func (b *TakenBack) Used(id string) bool { return b.Unlisted || slices.Contains(b.Shown, id) }
