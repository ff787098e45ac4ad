package thread

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Run is how a run began. It is written once, with the commit that
// accepts the run.
type Run struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	User   string `json:"user"`
	// Hash is the input's; the same run id with the same input attaches.
	Hash string `json:"hash"`
	// Continues is the stopped or interrupted run that this one goes on with.
	Continues   string `json:"continues,omitempty"`
	ParentRunID string `json:"parentRunId,omitempty"`
	// After is the last record before the run's first.
	After     holdfast.Cursor `json:"after"`
	StartedAt time.Time       `json:"startedAt"`

	Instructions   []json.RawMessage      `json:"instructions,omitempty"`
	Tools          []agui.Tool            `json:"tools,omitempty"`
	Context        []holdfast.ContextItem `json:"context,omitempty"`
	ForwardedProps json.RawMessage        `json:"forwardedProps,omitempty"`
}

// RunEnd is how a run ended.
type RunEnd struct {
	Format  int              `json:"format"`
	Outcome holdfast.Outcome `json:"outcome"`
	Code    string           `json:"code,omitempty"`
	EndedAt time.Time        `json:"endedAt"`
	// Last is the number of the run's last record.
	Last uint64 `json:"last"`
	// ContinuedBy is the run that resumed this one.
	ContinuedBy string `json:"continuedBy,omitempty"`
}

// Public is what the owner of the thread may see of a run; the zero outcome is that
// of one that runs.
func (rec *Run) Public(o RunEnd) holdfast.RunInfo {
	return holdfast.RunInfo{
		ID: rec.ID, Agent: rec.Agent, StartedAt: rec.StartedAt, EndedAt: o.EndedAt, Outcome: o.Outcome, Code: o.Code,
		Continues: rec.Continues, ContinuedBy: o.ContinuedBy, ParentRunID: rec.ParentRunID,
	}
}

// PutRunEnd says in a commit how the run has ended.
func PutRunEnd(c *holdfast.Commit, run string, o RunEnd) {
	o.Format = Format
	c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindOutcome, ID: run, Data: MustJSON(o)})
}

// RunEnd is how the thread's last run has ended, with the number of its last record.
func (s *State) RunEnd(at time.Time, last uint64) RunEnd {
	return RunEnd{Outcome: s.outcome, Code: s.code, EndedAt: at, Last: last}
}
