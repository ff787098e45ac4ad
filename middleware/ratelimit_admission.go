package middleware

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/ledgers"
	"github.com/holdfast-agents/holdfast/middleware/internal/pause"
)

// rateStoreTimeout is how long a call waits for the store that counts.
const rateStoreTimeout = 5 * time.Second

type rateLimiter struct{ RateLimitOptions }

// ratedCall is a call that counts.
type ratedCall struct {
	// id is the same when the call is started again.
	id      string
	account []string // the parts of its account's name
	tenant  string
	tool    string // empty for a model call
}

// admission is what became of a call: it may go on, unless there is a time to try
// again or an error of the store that could not be asked.
type admission struct {
	retryAt   time.Time
	unchecked error
}

func (l *rateLimiter) toolCall(ctx context.Context, call holdfast.ToolCall) *ratedCall {
	it := holdfast.IterationFrom(ctx)
	return &ratedCall{
		id: ledgers.Name("rate", l.Name, call.Key), account: l.account(&it, call.Name), tenant: it.Principal.Tenant, tool: call.Name,
	}
}

func (l *rateLimiter) modelCall(ctx context.Context, req *holdfast.ModelRequest) *ratedCall {
	it := holdfast.IterationFrom(ctx)
	id := ledgers.Name("rate", l.Name, "model", it.Thread, it.Run, strconv.Itoa(it.Number), strconv.Itoa(req.Attempt))
	return &ratedCall{id: id, account: l.account(&it, ""), tenant: it.Principal.Tenant}
}

// account names what the call is counted in, without the window.
func (l *rateLimiter) account(it *holdfast.Iteration, tool string) []string {
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

// admit counts a call, now or as soon as there is room for it.
func (l *rateLimiter) admit(ctx context.Context, c *ratedCall) (admission, error) {
	ledger, err := holdfast.LedgerFrom(ctx)
	if err != nil {
		return admission{}, err
	}
	patience := l.Now().Add(time.Duration(l.MaxWait))
	for {
		now := l.Now()
		begin, end := ledgers.Window(now, time.Duration(l.Window))
		err := l.reserve(ctx, ledger, c, now, begin, end)
		var full *holdfast.LimitError
		switch {
		case err == nil:
			return admission{}, nil
		case ctx.Err() != nil:
			return admission{}, context.Cause(ctx)
		case errors.Is(err, holdfast.ErrInvalid):
			return admission{}, err
		case !errors.As(err, &full):
			l.noteUnchecked(ctx, c)
			return admission{unchecked: err}, nil
		}
		l.note(ctx, c, begin, end)
		if l.Then != RateLimitWait || end.After(patience) || tooLate(ctx, end.Sub(now)) {
			return admission{retryAt: end}, nil
		}
		if err := pause.For(ctx, end.Sub(now)); err != nil {
			return admission{}, err
		}
	}
}

// tooLate reports whether a call that waits so long would be given up before: its
// timeout would not tell anybody of the limit.
func tooLate(ctx context.Context, wait time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && time.Until(deadline) <= wait
}

func (l *rateLimiter) reserve(ctx context.Context, ledger holdfast.Ledger, c *ratedCall, now, begin, end time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, rateStoreTimeout)
	defer cancel()
	account := ledgers.Name(append(slices.Clip(c.account), begin.Format(time.RFC3339))...)
	return ledger.Reserve(ctx, &holdfast.Reservation{
		Tenant: c.tenant, ID: c.id, Now: now,
		Entries: []holdfast.Entry{{Account: account, Amount: 1, Limit: l.Limit, Expires: end}},
	})
}

// rateNotes is what a run was told already. It is in the run's context instead of
// its state, because to say it again after a takeover is right.
type rateNotes struct {
	mu        sync.Mutex
	window    time.Time
	unchecked bool
}

// rateKey finds the notes of one rate limit in a context.
type rateKey struct{ l *rateLimiter }

func (l *rateLimiter) run(next holdfast.RunCall) holdfast.RunCall {
	return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
		return next(context.WithValue(ctx, rateKey{l}, &rateNotes{}), it)
	}
}

// first reports whether it is the first time in the run that said returns false.
func (l *rateLimiter) first(ctx context.Context, said func(*rateNotes) bool) bool {
	notes, ok := ctx.Value(rateKey{l}).(*rateNotes)
	if !ok {
		return true
	}
	notes.mu.Lock()
	defer notes.mu.Unlock()
	return !said(notes)
}

// note says that the limit was reached. A notice that cannot be written ends
// nothing: whatever keeps it from the log keeps the call's result from it, too.
func (l *rateLimiter) note(ctx context.Context, c *ratedCall, begin, end time.Time) {
	if l.first(ctx, func(n *rateNotes) bool {
		said := n.window.Equal(begin)
		n.window = begin
		return said
	}) {
		_ = holdfast.Notify(ctx, NoticeRateLimited, rateNotice{Name: l.Name, Tool: c.tool, Limit: l.Limit, Window: l.Window, RetryAt: &end})
	}
}

func (l *rateLimiter) noteUnchecked(ctx context.Context, c *ratedCall) {
	if l.first(ctx, func(n *rateNotes) bool {
		said := n.unchecked
		n.unchecked = true
		return said
	}) {
		_ = holdfast.Notify(ctx, NoticeRateLimitUnchecked, rateNotice{Name: l.Name, Tool: c.tool, Limit: l.Limit, Window: l.Window})
	}
}

// rateNotice is the value of the notices.
type rateNotice struct {
	Name    string     `json:"name"`
	Tool    string     `json:"tool,omitempty"` // not for model calls
	Limit   int64      `json:"limit"`
	Window  Duration   `json:"window"`
	RetryAt *time.Time `json:"retryAt,omitempty"`
}
