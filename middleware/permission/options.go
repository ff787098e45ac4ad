package permission

import (
	"cmp"
	"time"
)

// Options are the options of [New].
type Options struct {
	// Rules are looked at in their order: the first that matches a call decides.
	Rules []Rule `json:"rules,omitempty"`
	// Default decides about a call that no rule matches; default ask.
	Default Decision `json:"default,omitempty"`
	// Now is the clock; default time.Now.
	Now func() time.Time `json:"-"`
}

// Rule says what becomes of some calls.
type Rule struct {
	// Tool is the name of the tool; "*" in it stands for any characters.
	Tool string `json:"tool"`
	// Args are conditions that must all hold, by the path of the argument: "amount",
	// "to.country", "items.0.sku". An argument that is not there matches nothing.
	Args map[string]Condition `json:"args,omitempty"`
	// Then is allow, ask or deny.
	Then Decision `json:"then"`
	// Reason is told to the model when a call is denied, and to the person who is
	// asked.
	Reason string `json:"reason,omitempty"`
	// Remember is what a person may choose among, for an answer that also holds for
	// later calls; default run and thread, an empty list is nothing.
	Remember []Scope `json:"remember,omitempty"`
	// Exact: a remembered answer holds only for calls with the same arguments.
	Exact bool `json:"exact,omitempty"`
}

// Decision is what is decided about a call.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Scope is how long, and where, an answer is remembered.
type Scope string

// The scopes: until the next message of the person, in the thread, or in all
// threads of the user.
const (
	ScopeRun    Scope = "run"
	ScopeThread Scope = "thread"
	ScopeUser   Scope = "user"
)

func (o Options) withDefaults() Options {
	o.Default = cmp.Or(o.Default, Ask)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
