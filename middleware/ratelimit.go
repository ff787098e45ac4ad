package middleware

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

// RateLimit bounds how many calls of tools, or of the model, are made in a window of time.
// The store counts them for all servers together. The counts belong to the tenant, survive
// every crash, and are dropped when their window is over; the middleware keeps no state. A
// call that starts again, after a crash or with a person's answer, is not counted twice in
// the same window.
//
// Notices: [NoticeRateLimited], [NoticeRateLimitUnchecked].
//
// An agent may have several with different names.
func RateLimit(o RateLimitOptions) holdfast.Middleware {
	mustBeValid("RateLimit", o)
	l := &rateLimiter{o.withDefaults()}
	m := holdfast.Middleware{
		Name:    "holdfast.rate_limit",
		Notices: []string{NoticeRateLimited, NoticeRateLimitUnchecked},
		Run:     l.run,
	}
	if o.Model {
		m.Model = l.model
	} else {
		m.Tool = l.tool
	}
	return m
}

func (l *rateLimiter) tool(next holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		// A call that continues was counted when it began.
		if !l.counts(call.Name) || call.Finished || call.Kept != nil {
			return next(ctx, tool, call)
		}
		c := l.toolCall(ctx, call)
		outcome, err := l.admit(ctx, c)
		switch {
		case err != nil:
			return holdfast.ToolResult{NotRun: true}, err
		case outcome.unchecked != nil && l.OnStoreFailure == StoreFailureDeny:
			return notRun("Not run: the rate limit of %s could not be checked, because the store does not "+
				"answer. Try again later.", call.Name), nil
		case outcome.retryAt.IsZero():
			return next(ctx, tool, call)
		case l.Then == RateLimitEnd:
			return holdfast.ToolResult{NotRun: true}, &holdfast.EndRun{Err: l.limited(c, outcome.retryAt)}
		}
		return notRun("Not run: %s may be called %d times in %s, and was. Try again at %s.", call.Name, l.Limit,
			time.Duration(l.Window), outcome.retryAt.Format(time.RFC3339)), nil
	}
}

func notRun(format string, args ...any) holdfast.ToolResult {
	return holdfast.ToolResult{Failed: true, NotRun: true, Text: fmt.Sprintf(format, args...)}
}

func (l *rateLimiter) counts(tool string) bool {
	return len(l.Tools) == 0 || slices.ContainsFunc(l.Tools, func(pattern string) bool {
		return shared.Matches(pattern, tool)
	})
}

func (l *rateLimiter) model(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			c := l.modelCall(ctx, req)
			outcome, err := l.admit(ctx, c)
			switch {
			case err != nil:
			case outcome.unchecked != nil && l.OnStoreFailure == StoreFailureDeny:
				err = shared.Unchecked("rate limit").Wrap(outcome.unchecked)
			case !outcome.retryAt.IsZero():
				err = l.limited(c, outcome.retryAt)
			}
			if err != nil {
				yield(holdfast.Delta{}, err)
				return
			}
			next(ctx, req)(yield)
		}
	}
}

// limited returns the error of a run that ends at the limit.
func (l *rateLimiter) limited(c *ratedCall, retryAt time.Time) *holdfast.Error {
	what := "model calls"
	if c.tool != "" {
		what = "calls of " + c.tool
	}
	at := retryAt.Format(time.RFC3339)
	return holdfast.Errorf(codes.RateLimited, "The rate limit %q allows %d %s in %s; the next is possible at %s.",
		l.Name, l.Limit, what, time.Duration(l.Window), at).
		WithHint(`To go on then, POST the same threadId with "messages": [] and a new runId.`).
		With("name", l.Name).With("limit", l.Limit).With("window", l.Window).With("retryAt", at)
}
