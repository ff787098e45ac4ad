package thread

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Run is how a run began. It is written with the commit that accepts the run, and again by a
// takeover that goes on with another revision of the agent.
type Run struct {
	Format int    `json:"format"` // of this value
	ID     string `json:"id"`     // chosen by the client
	Agent  string `json:"agent"`  // name of the agent that runs
	// Revision is that of the agent that the run is with. Runs of early versions have none.
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

	// Instructions, Tools, Context and ForwardedProps are the request's. They hold for
	// this run only and are no part of the history.
	Instructions   []json.RawMessage      `json:"instructions,omitempty"`
	Tools          []agui.Tool            `json:"tools,omitempty"`
	Context        []holdfast.ContextItem `json:"context,omitempty"`
	ForwardedProps json.RawMessage        `json:"forwardedProps,omitempty"`
}

// In has the record written in a format, without what that does not have.
func (rec *Run) In(format int) {
	rec.Format = format
	if format < formatRevision {
		rec.Revision = ""
	}
}

// formatRevision is the first format that has revisions.
const formatRevision = 9

// RunEnd is how a run ended.
type RunEnd struct {
	Format  int              `json:"format"`         // of this value
	Outcome holdfast.Outcome `json:"outcome"`        // one of the four stored ones
	Code    string           `json:"code,omitempty"` // the error's, if it ended in one
	Text    string           `json:"text,omitempty"` // what a person reads about it
	EndedAt time.Time        `json:"endedAt"`        // when it ended
	// Last is the number of the run's last record.
	Last uint64 `json:"last"`
	// ContinuedBy is the id of the run that resumed this one.
	ContinuedBy string `json:"continuedBy,omitempty"`
}

// Public returns what the thread's owner may see of a run. o is zero for one that runs.
func (rec *Run) Public(o RunEnd) threads.Run {
	return threads.Run{
		ID: rec.ID, Agent: rec.Agent, Revision: rec.Revision, StartedAt: rec.StartedAt, EndedAt: o.EndedAt, Outcome: o.Outcome, Code: o.Code, Text: o.Text,
		Continues: rec.Continues, ContinuedBy: o.ContinuedBy, ParentRunID: rec.ParentRunID,
	}
}

// PutRunEnd adds to the commit c how the run ended.
func PutRunEnd(c *store.Commit, run string, o RunEnd) {
	o.Format = FormatBefore
	c.Put = append(c.Put, store.Value{Kind: store.KindOutcome, ID: run, Data: MustJSON(o)})
}

// RunEnd returns how the thread's last run ended, at that time and with the number of
// its last record.
func (s *State) RunEnd(at time.Time, last uint64) RunEnd {
	outcome, code, text := s.Ended()
	return RunEnd{Outcome: outcome, Code: code, Text: text, EndedAt: at, Last: last}
}
