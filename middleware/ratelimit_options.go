package middleware

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The notices of [RateLimit]. Their value has the name of the limit, the tool, the limit
// and the window.
const (
	// NoticeRateLimited is the notice of a run that has reached the limit, at most once per
	// window, with the time at which the next call is possible.
	NoticeRateLimited = "holdfast.rate_limited"
	// NoticeRateLimitUnchecked is the notice of a run whose calls cannot be counted because
	// the store does not answer, once per run.
	NoticeRateLimitUnchecked = "holdfast.rate_limit_unchecked"
)

// The choices for a call above a [RateLimit].
const (
	// RateLimitWait has it wait for the next window.
	RateLimitWait = "wait"
	// RateLimitTell tells the model that it was not run.
	RateLimitTell = "tell"
	// RateLimitEnd ends the run.
	RateLimitEnd = "end"
)

// The choices for a call while the store of a [RateLimit] does not answer.
const (
	// StoreFailureAllow runs it without counting it.
	StoreFailureAllow = "allow"
	// StoreFailureDeny does not run it.
	StoreFailureDeny = "deny"
)

// The things that a [RateLimit] can count separately.
const (
	PerTenant = "tenant"
	PerUser   = "user"
	PerAgent  = "agent"
	PerTool   = "tool"
	PerThread = "thread"
)

// RateLimitOptions are the options of [RateLimit].
type RateLimitOptions struct {
	// Name distinguishes limits: those with the same name count together, whichever agents
	// have them. Empty means "default".
	Name string `json:"name"`
	// Per lists what has a limit of its own: [PerUser], [PerAgent], [PerTool], [PerThread].
	// A tenant always does; [PerTenant] may be listed to say so.
	Per []string `json:"per"`
	// Tools are the tools whose calls count; a * in a name matches any text. Empty means
	// all tools.
	Tools []string `json:"tools"`
	// Model has calls of the model count instead of calls of tools.
	Model bool `json:"model"`
	// Limit is how many calls are allowed in one Window.
	Limit int64 `json:"limit"`
	// Window is the length of a window, a second or more. Windows begin at multiples of their
	// length, in UTC.
	Window Duration `json:"window"`
	// Then is what happens to a call above the limit. With [RateLimitWait] (default) it
	// waits for the next window, for MaxWait at most, and then continues as with
	// RateLimitTell. With [RateLimitTell] the model reads that the call was not run, and
	// when it can be; for a call of the model itself this means RateLimitEnd. With
	// [RateLimitEnd] the run ends with [codes.RateLimited].
	Then string `json:"then"`
	// MaxWait is how long one call waits at most, and keeps its run's place on the server; 0
	// means one window, but at most a minute.
	MaxWait Duration `json:"maxWait"`
	// OnStoreFailure is what happens to a call while the store does not answer:
	// [StoreFailureAllow] or [StoreFailureDeny]. Empty means to allow it: a limit protects
	// a service, and a store that is down is no reason to stop everybody's work.
	OnStoreFailure string `json:"onStoreFailure"`
	// Now is the clock; nil means that of the store, if it has one, or [time.Now].
	Now func() time.Time `json:"-"`
}

func (o RateLimitOptions) withDefaults() RateLimitOptions {
	o.Name = cmp.Or(o.Name, "default")
	o.Then = cmp.Or(o.Then, RateLimitWait)
	o.MaxWait = cmp.Or(o.MaxWait, min(o.Window, Duration(time.Minute)))
	o.OnStoreFailure = cmp.Or(o.OnStoreFailure, StoreFailureAllow)
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o RateLimitOptions) Validate() error {
	given := o.MaxWait // the default is right, whatever Then is
	o = o.withDefaults()
	switch {
	case o.Limit <= 0 || o.Limit > store.MaxAmount:
		return fmt.Errorf("limit is %d: write how many calls a window may have, 1 or more", o.Limit)
	case o.Window < Duration(time.Second):
		return fmt.Errorf("window is %s: write 1s or more", time.Duration(o.Window))
	case o.Model && len(o.Tools) > 0:
		return errors.New("tools and model are both set: write two rate limits with two names")
	case o.Model && slices.Contains(o.Per, PerTool):
		return errors.New("per has tool, and model is set: a model call has no tool; leave one of them out")
	case !slices.Contains([]string{RateLimitWait, RateLimitTell, RateLimitEnd}, o.Then):
		return fmt.Errorf("then is %q: write %q, %q or %q", o.Then, RateLimitWait, RateLimitTell, RateLimitEnd)
	case given < 0 || given > 0 && o.Then != RateLimitWait:
		return fmt.Errorf("maxWait is %s with then %q: write a time with then wait, or leave it out",
			time.Duration(given), o.Then)
	case !slices.Contains([]string{StoreFailureAllow, StoreFailureDeny}, o.OnStoreFailure):
		return fmt.Errorf("onStoreFailure is %q: write %q or %q", o.OnStoreFailure, StoreFailureAllow, StoreFailureDeny)
	case slices.Contains(o.Tools, ""):
		return errors.New("tools has an empty name: write the name of a tool, or a part of it with *")
	}
	for _, per := range o.Per {
		if !slices.Contains([]string{PerTenant, PerUser, PerAgent, PerTool, PerThread}, per) {
			return fmt.Errorf("per has %q: write tenant, user, agent, tool or thread", per)
		}
	}
	return nil
}
