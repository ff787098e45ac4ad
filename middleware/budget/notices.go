package budget

// The notices of a budget.
const (
	// NoticeWarning is the notice of a limit that is nearly reached, once per run and limit.
	NoticeWarning = "holdfast.budget_warning"
	// NoticeExceeded is the notice of a call for which there is not enough left.
	NoticeExceeded = "holdfast.budget_exceeded"
	// NoticeUnreported is the notice of a model that does not report its usage, with what is
	// counted instead, once per run.
	NoticeUnreported = "holdfast.budget_unreported"
)

// unreported is the value of [NoticeUnreported]: what is counted for the call.
type unreported struct {
	Tokens   int64  `json:"tokens"`
	Cost     Money  `json:"cost"`
	Currency string `json:"currency"`
}

// limitNotice is the value of the notices about a limit. Amounts are tokens, or money in
// units of the currency.
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
