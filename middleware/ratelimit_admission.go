package middleware

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
	"github.com/holdfast-agents/holdfast/store"
)

// A call is admitted when the ledger has reserved one unit for it in the account of the
// current window. The reservation's id is made from what identifies the call, so a call
// that starts again has its reservation already. Clients choose the ids of threads and
// runs, so the thread's incarnation is part of it: who deletes a thread and makes it
// again, or goes back in it, is counted again.

// rateStoreTimeout is how long a call waits for an answer from the store.
const rateStoreTimeout = 5 * time.Second

type rateLimiter struct{ RateLimitOptions }

// ratedCall is a call that is counted.
type ratedCall struct {
	// id is the same when the call starts again.
	id      string
	account []string // the parts of the account's name, without the window
	tenant  string
	tool    string // empty for a model call
}

// admission is the decision about a call. The zero value admits it. Otherwise there is a
// time at which to try again, or the error of a store that did not answer.
type admission struct {
	retryAt   time.Time
	unchecked error
}

func (l *rateLimiter) toolCall(ctx context.Context, call holdfast.ToolCall) *ratedCall {
	it := holdfast.IterationFrom(ctx)
	return &ratedCall{
		id:      l.idOf(&it, call.Key),
		account: l.accountOf(&it, call.Name),
		tenant:  it.Principal.Tenant,
		tool:    call.Name,
	}
}

func (l *rateLimiter) modelCall(ctx context.Context, req *holdfast.ModelRequest) *ratedCall {
	it := holdfast.IterationFrom(ctx)
	id := l.idOf(&it, "model", it.Run, strconv.Itoa(it.Number), strconv.Itoa(req.Attempt))
	return &ratedCall{id: id, account: l.accountOf(&it, ""), tenant: it.Principal.Tenant}
}

// idOf returns the reservation's id of the call that the parts identify in its thread.
func (l *rateLimiter) idOf(it *holdfast.Iteration, call ...string) string {
	parts := []string{"rate", l.Name, it.Principal.User, it.Thread, it.Incarnation, strconv.Itoa(it.Rewinds)}
	return shared.AccountName(append(parts, call...)...)
}

// accountOf returns the parts of the name of the account that counts a call.
func (l *rateLimiter) accountOf(it *holdfast.Iteration, tool string) []string {
	parts := []string{"rate", l.Name}
	for _, p := range []struct{ per, value string }{
		{PerUser, it.Principal.User}, {PerAgent, it.Agent}, {PerTool, tool}, {PerThread, it.Thread},
	} {
		if slices.Contains(l.Per, p.per) {
			parts = append(parts, p.per, p.value)
		}
	}
	return parts
}

// admit counts a call now, or as soon as there is room for it.
func (l *rateLimiter) admit(ctx context.Context, c *ratedCall) (admission, error) {
	ledger, err := store.LedgerFrom(ctx)
	if err != nil {
		return admission{}, err
	}
	clock := shared.LedgerClock(ledger, l.Now)
	patience := clock().Add(time.Duration(l.MaxWait))
	for {
		now := clock()
		begin, end := shared.Window(now, time.Duration(l.Window))
		err := l.reserve(ctx, ledger, c, now, begin, end)
		var full *store.LimitError
		switch {
		case err == nil:
			return admission{}, nil
		case ctx.Err() != nil:
			return admission{}, context.Cause(ctx)
		case errors.Is(err, store.ErrInvalid):
			return admission{}, err
		case !errors.As(err, &full):
			l.noteUnchecked(ctx, c)
			return admission{unchecked: err}, nil
		}
		l.note(ctx, c, begin, end)
		if l.Then != RateLimitWait || end.After(patience) || tooLate(ctx, end.Sub(now)) {
			return admission{retryAt: end}, nil
		}
		if err := shared.Pause(ctx, end.Sub(now)); err != nil {
			return admission{}, err
		}
	}
}

// tooLate reports whether a call would reach its deadline while it waits. It is better told
// about the limit now, since its timeout would not mention it.
func tooLate(ctx context.Context, wait time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && time.Until(deadline) <= wait
}

func (l *rateLimiter) reserve(ctx context.Context, ledger store.Ledger, c *ratedCall, now, begin, end time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, rateStoreTimeout)
	defer cancel()
	account := shared.AccountName(append(slices.Clip(c.account), begin.Format(time.RFC3339))...)
	return ledger.Reserve(ctx, &store.Reservation{
		Tenant: c.tenant, ID: c.id, Now: now,
		Entries: []store.Entry{{Account: account, Amount: 1, Limit: l.Limit, Expires: shared.KeptUntil(end)}},
	})
}

// rateNotes is which notices a run has sent. It is kept in the run's context rather than in
// a state, because after a takeover they should be sent again.
type rateNotes struct {
	mu        sync.Mutex
	window    time.Time
	unchecked bool
}

// rateKey is the context key of one rate limit's notes.
type rateKey struct{ l *rateLimiter }

func (l *rateLimiter) run(next holdfast.RunCall) holdfast.RunCall {
	return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
		return next(context.WithValue(ctx, rateKey{l}, &rateNotes{}), it)
	}
}

// first reports whether a notice is the first of its kind in the run. The function looks
// at the notes, reports whether it was sent already, and notes that it is sent now.
func (l *rateLimiter) first(ctx context.Context, sent func(*rateNotes) bool) bool {
	notes, ok := ctx.Value(rateKey{l}).(*rateNotes)
	if !ok {
		return true
	}
	notes.mu.Lock()
	defer notes.mu.Unlock()
	return !sent(notes)
}

// note sends the notice that the limit was reached. An error is ignored, because whatever
// keeps the notice from the log keeps the result of the call from it too.
func (l *rateLimiter) note(ctx context.Context, c *ratedCall, begin, end time.Time) {
	if l.first(ctx, func(n *rateNotes) bool {
		sent := n.window.Equal(begin)
		n.window = begin
		return sent
	}) {
		_ = holdfast.Notify(ctx, NoticeRateLimited, rateNotice{
			Name:    l.Name,
			Tool:    c.tool,
			Limit:   l.Limit,
			Window:  l.Window,
			RetryAt: &end,
		})
	}
}

func (l *rateLimiter) noteUnchecked(ctx context.Context, c *ratedCall) {
	if l.first(ctx, func(n *rateNotes) bool {
		sent := n.unchecked
		n.unchecked = true
		return sent
	}) {
		_ = holdfast.Notify(ctx, NoticeRateLimitUnchecked,
			rateNotice{Name: l.Name, Tool: c.tool, Limit: l.Limit, Window: l.Window})
	}
}

// rateNotice is the value of the notices.
type rateNotice struct {
	Name    string     `json:"name"`
	Tool    string     `json:"tool,omitempty"` // empty for model calls
	Limit   int64      `json:"limit"`
	Window  Duration   `json:"window"`
	RetryAt *time.Time `json:"retryAt,omitempty"`
}
