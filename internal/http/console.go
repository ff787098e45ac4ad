package http

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/figures"
	"github.com/holdfast-agents/holdfast/threads"
)

// Routes of the server, besides those of threads, for the page and for operators. Nothing here
// refers to the handler, which has these types in its Config.

// Console is what the server tells about itself, and what it does for its operators.
type Console interface {
	// Operates returns why the sender of the request may not do what is for operators of the
	// tenant or of the server: action is access.OperateTenant or access.OperateServer. The callers
	// of the following functions have asked for the latter. A refusal is in the log as the attempt,
	// unless that is empty: then it was only asked.
	Operates(r *http.Request, who holdfast.Principal, action access.Action, attempt string) error
	// Overview returns the server's own figures.
	Overview(ctx context.Context) Overview
	// Settings returns what the server was started with; nil if it cannot say.
	Settings(ctx context.Context, who holdfast.Principal) []Setting
	// CallTool calls one tool of an agent by hand.
	CallTool(ctx context.Context, who holdfast.Principal, call ToolByHand) (*ToolOutcome, error)
}

// Others are the threads of other users, for operators of the tenant who read them.
type Others interface {
	// ReadAs returns as whom an operator reads the threads of another user of the tenant.
	// thread is the one that is asked for, if it is one.
	ReadAs(r *http.Request, who holdfast.Principal, user, thread string) (holdfast.Principal, error)
	// ThreadsOfAll lists the threads of all users of the tenant, the most recently active first.
	ThreadsOfAll(r *http.Request, who holdfast.Principal, page ThreadPage) (*threads.List, error)
}

// Demo is a server for trying out: its models are scripted, and it is for its own machine.
type Demo interface {
	// Scripted reports whether the model of the default agent is scripted.
	Scripted() bool
	// CanKill reports whether Kill works for the sender of the request.
	CanKill(r *http.Request) bool
	// Kill kills the process; the process that started it starts it again.
	Kill()
	// Process is the name of the process in the log of threads.
	Process() string
}

// Overview is what the server tells about itself in figures.
type Overview struct {
	// Process is the name of the process that answers.
	Process   string    `json:"process"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	Now       time.Time `json:"now"`
	// Store is which store it has, and Durability what a commit survives there.
	Store      string `json:"store"`
	Durability string `json:"durability,omitempty"`
	Demo       bool   `json:"demo"`
	// Processes are those that share the store and live, this one among them.
	Processes []string `json:"processes"`
	// Index is how far the walk has come that enters the threads of earlier versions in the index.
	Index IndexProgress `json:"index"`
	// IndexLagMs is how much later than its time, at most, something was found that was due in the last
	// minute.
	IndexLagMs int64 `json:"indexLagMs"`
	figures.Figures
}

// IndexProgress is how far that walk has come: see indexing.Progress.
type IndexProgress struct {
	Complete bool  `json:"complete"`
	Pass     int   `json:"pass"`
	Threads  int64 `json:"threads"`
	Entered  int64 `json:"entered"`
}

// Setting is one of the settings that the server was started with.
type Setting struct {
	Name string `json:"name"`
	// Value is as it would be written; a secret is never in it.
	Value string `json:"value"`
	// Source is where the value comes from: flag, env, file or default.
	Source string `json:"source"`
	// Text says what the setting is for.
	Text string `json:"text,omitempty"`
}

// ToolByHand is a call that no model makes.
type ToolByHand struct {
	Agent, Tool    string
	Arguments      json.RawMessage
	IdempotencyKey string
}

// ToolOutcome is what came of a call by hand.
type ToolOutcome struct {
	// Result is what the model would read: text, or the parts of a result in parts.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the text of a call that failed.
	Error string `json:"error,omitempty"`
	// IdempotencyKey is the key that the tool was called with.
	IdempotencyKey string `json:"idempotencyKey"`
	DurationMs     int64  `json:"durationMs"`
}
