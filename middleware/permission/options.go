package permission

import (
	"cmp"
	"time"
)

// Options are the options of [New].
type Options struct {
	// Rules are tried in order; the first one that matches a call decides.
	Rules []Rule `json:"rules,omitempty"`
	// Default decides about a call that no rule matches; the default is [Ask].
	Default Decision `json:"default,omitempty"`
	// Now is the clock; nil means [time.Now].
	Now func() time.Time `json:"-"`
}

// Rule decides about the calls that it matches.
type Rule struct {
	// Tool is the name of the tool; a * in it matches any text.
	Tool string `json:"tool"`
	// Args are conditions by the path of an argument: "amount", "to.country",
	// "items.0.sku". All of them must hold. A path that does not exist matches nothing.
	Args map[string]Condition `json:"args,omitempty"`
	// Then is the decision.
	Then Decision `json:"then"`
	// Reason is shown to the model when a call is denied, and to the person who is asked.
	Reason string `json:"reason,omitempty"`
	// Remember lists the scopes that a person may choose from for an answer that also
	// applies to later calls. Nil means run and thread; an empty list means none.
	Remember []Scope `json:"remember,omitempty"`
	// Exact limits a remembered answer to calls with the same arguments.
	Exact bool `json:"exact,omitempty"`
}

// Decision is what happens to a call.
type Decision string

// The decisions: run the call, ask a person, or do not run it.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Scope is where, and therefore for how long, an answer is remembered.
type Scope string

// The scopes: until the person's next message, in the thread, or in all threads of the
// user.
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
