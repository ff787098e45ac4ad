package budget

// The notices of a budget.
const (
	// NoticeWarning says, once for each run and limit, that a limit is nearly reached.
	NoticeWarning = "holdfast.budget_warning"
	// NoticeExceeded says that there is no room for a call, and how much it needs.
	NoticeExceeded = "holdfast.budget_exceeded"
	// NoticeUnreported says, once for a run, that the model does not report what it uses,
	// and what is counted instead.
	NoticeUnreported = "holdfast.budget_unreported"
)

// unreported is the value of [NoticeUnreported]: what counts in the place of
// what the call has used.
type unreported struct {
	Tokens   int64  `json:"tokens"`
	Cost     Money  `json:"cost"`
	Currency string `json:"currency"`
}

// limitNotice is the value of the notices about a limit. Amounts are tokens, or
// money in units of the currency.
type limitNotice struct {
	Scope    string `json:"scope"`
	Unit     string `json:"unit"`
	Used     any    `json:"used"`
	Limit    any    `json:"limit"`
	Needed   any    `json:"needed,omitempty"`
	Currency string `json:"currency,omitempty"`
}

func (b *budgeter) notice(r *Reached) limitNotice {
	n := limitNotice{Scope: r.Scope, Unit: r.Unit}
	if r.Unit == unitCost {
		n.Used, n.Limit, n.Currency = Money(r.Used), Money(r.Limit), b.Currency
		if r.Needed > 0 {
			n.Needed = Money(r.Needed)
		}
		return n
	}
	n.Used, n.Limit = r.Used, r.Limit
	if r.Needed > 0 {
		n.Needed = r.Needed
	}
	return n
}
