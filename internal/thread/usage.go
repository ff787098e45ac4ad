package thread

import (
	"github.com/holdfast-agents/holdfast"
)

// AddUsage adds what a model call used to the sum for its provider and model. u may be
// nil.
func (s *State) AddUsage(u *holdfast.Usage) {
	if u == nil {
		return
	}
	for i := range s.Usage {
		if s.Usage[i].Provider == u.Provider && s.Usage[i].Model == u.Model {
			s.Usage[i] = sumUsage(s.Usage[i], *u)
			return
		}
	}
	s.Usage = append(s.Usage, *u)
}

// sumUsage adds b's counts to a's. A count is nil if neither has it.
func sumUsage(a, b holdfast.Usage) holdfast.Usage {
	add := func(x, y *int64) *int64 {
		if x == nil {
			return y
		}
		if y == nil {
			return x
		}
		sum := *x + *y
		return &sum
	}
	a.InputTokens = add(a.InputTokens, b.InputTokens)
	a.OutputTokens = add(a.OutputTokens, b.OutputTokens)
	a.TotalTokens = add(a.TotalTokens, b.TotalTokens)
	a.ReasoningTokens = add(a.ReasoningTokens, b.ReasoningTokens)
	a.CachedInput = add(a.CachedInput, b.CachedInput)
	a.CacheWriteInput = add(a.CacheWriteInput, b.CacheWriteInput)
	return a
}
