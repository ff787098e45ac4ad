package budget

import (
	"context"
	"maps"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
	"github.com/holdfast-agents/holdfast/store"
)

// The units of limits, which are the last part of an account's name.
const unitTokens, unitCost = "tokens", "cost"

// How long accounts of runs and threads are kept after the last call.
const (
	runAccountAge    = 30 * 24 * time.Hour
	threadAccountAge = 400 * 24 * time.Hour
	// A side run is over soon, and there is no thread.
	sideAccountAge = time.Hour
)

// allowance is a limit with the account that it bounds.
type allowance struct {
	scope, unit string
	account     string
	limit       int64 // including what it was raised by
	base        int64
	expires     time.Time // zero: never
}

// accounts returns the states with the accounts of the run and its thread. Accounts are
// chosen once and then kept, so that a run that resumes another has the same one, and a
// fork that of its origin.
func accounts(ctx context.Context, it *holdfast.Iteration) (thread ThreadState, run RunState, err error) {
	if thread, err = threadState.Load(ctx); err != nil {
		return thread, run, err
	}
	if run, err = runState.Load(ctx); err != nil {
		return thread, run, err
	}
	if thread.Account == "" {
		thread, err = threadState.Update(ctx, func(t ThreadState) ThreadState {
			t.Account = shared.AccountName("budget", scopeThread, it.Thread)
			return t
		})
	}
	if err == nil && run.Account == "" {
		run, err = runState.Update(ctx, func(r RunState) RunState {
			r.Account = shared.AccountName("budget", scopeRun, it.Thread, it.Run)
			return r
		})
	}
	return thread, run, err
}

// allowances returns the limits as they are now.
func (b *budgeter) allowances(it *holdfast.Iteration, thread ThreadState, run RunState, now time.Time) []allowance {
	var all []allowance
	for _, s := range b.scopes() {
		name, expires, raised := "", time.Time{}, run.Raised
		switch s.name {
		case scopeRun:
			name, expires = run.Account, now.Add(age(it, runAccountAge))
		case scopeThread:
			name, expires, raised = thread.Account, now.Add(age(it, threadAccountAge)), thread.Raised
		case scopeUser:
			name, expires = windowed(s.limit, now, "budget", scopeUser, it.Principal.User)
		default:
			name, expires = windowed(s.limit, now, "budget", scopeTenant)
		}
		for _, u := range []struct {
			unit string
			base int64
		}{{unitTokens, s.limit.Tokens}, {unitCost, int64(s.limit.Cost)}} {
			if u.base > 0 {
				account := name + "/" + u.unit
				limit := min(u.base+raised[account], store.MaxAmount)
				all = append(all, allowance{
					scope:   s.name,
					unit:    u.unit,
					account: account,
					limit:   limit,
					base:    u.base,
					expires: expires,
				})
			}
		}
	}
	return all
}

// age returns how long an account of a run or its thread is kept.
func age(it *holdfast.Iteration, usual time.Duration) time.Duration {
	if it.Side {
		return sideAccountAge
	}
	return usual
}

// windowed returns the name of the account for the current window, and until when it is kept.
func windowed(l Limit, now time.Time, parts ...string) (name string, expires time.Time) {
	if l.Window == 0 {
		return shared.AccountName(append(parts, "all")...), time.Time{}
	}
	begin, end := shared.Window(now, time.Duration(l.Window))
	return shared.AccountName(append(parts, begin.Format(time.RFC3339))...), shared.KeptUntil(end)
}

// raise returns a copy of the map with one limit raised.
func raise(raised map[string]int64, account string, by int64) map[string]int64 {
	next := maps.Clone(raised)
	if next == nil {
		next = map[string]int64{}
	}
	next[account] = min(next[account]+by, store.MaxAmount)
	return next
}
