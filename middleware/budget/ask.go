package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// reason distinguishes our questions, and the answers to them, from those of others.
const reason = "holdfast:budget"

// answerSchema describes the answer to the question at a limit. Tokens are whole numbers,
// money is not.
func answerSchema(unit string) json.RawMessage {
	number := "number"
	if unit == unitTokens {
		number = "integer"
	}
	return json.RawMessage(`{"type":"object","properties":{` +
		`"allow":{"type":"boolean","description":"whether the run may go on"},` +
		`"raise":{"type":"` + number + `","exclusiveMinimum":0,"description":"how much more may be used, in the unit ` +
		`of the limit; left out: the configured limit once more"}},` +
		`"required":["allow"]}`)
}

// exceeded returns what happens instead of a call for which there is not enough left: the
// end of the run, or a question.
func (c *spending) exceeded(full *store.LimitError) error {
	i := slices.IndexFunc(c.limits, func(l allowance) bool { return l.account == full.Account })
	if i < 0 {
		return full // the ledger names an account that is not ours
	}
	l := c.limits[i]
	at := Reached{
		Scope:   l.scope,
		Unit:    l.unit,
		Account: l.account,
		Used:    full.Used,
		Needed:  full.Amount,
		Limit:   l.limit,
		Base:    l.base,
	}
	_ = holdfast.Notify(c.ctx, NoticeExceeded, c.notice(&at))
	if c.Then != ThenAsk {
		return c.ended(&at)
	}
	_, err := runState.Update(c.ctx, func(r RunState) RunState {
		r.Asked = at
		return r
	})
	if err == nil {
		err = c.question(&at)
	}
	return err
}

func (b *budgeter) question(at *Reached) *holdfast.Interrupt {
	facts, _ := json.Marshal(b.notice(at)) // numbers and names can always be encoded
	return &holdfast.Interrupt{
		Reason: reason, Message: b.describe(at) + " May it go on?",
		ResponseSchema: answerSchema(at.Unit), Metadata: facts,
	}
}

func (b *budgeter) describe(at *Reached) string {
	number, unit := strconv.FormatInt, "tokens"
	if at.Unit == unitCost {
		number, unit = func(n int64, _ int) string { return Money(n).String() }, b.Currency
	}
	return fmt.Sprintf("The %s has used %s of its budget of %s %s; %s more are needed for the next call.", at.Scope,
		number(at.Used, 10), number(at.Limit, 10), unit, number(at.Needed, 10))
}

func (b *budgeter) ended(at *Reached) *holdfast.Error {
	n := b.notice(at)
	e := holdfast.Errorf(codes.BudgetExceeded, "%s", b.describe(at)).
		With("scope", n.Scope).With("unit", n.Unit).With("used", n.Used).With("limit", n.Limit).With("needed", n.Needed)
	if at.Needed > at.Limit {
		return e.WithHint("Not even one call fits: raise the limit, or lower the budget's reserveTokens.")
	}
	return e.WithHint(`Raise the limit, or wait until the budget is reset. Then POST the same threadId with ` +
		`"messages": [] and a new runId.`)
}

// takeAnswer raises the limit about which a person was asked, or ends the run. It also
// drops the question, so that an answer counts once, however often the iteration begins
// again.
func (b *budgeter) takeAnswer(ctx context.Context, it *holdfast.Iteration, thread *ThreadState, run *RunState) error {
	at := run.Asked
	if at.Account == "" || it.Answer == nil || it.Answer.Reason != reason {
		return nil
	}
	by, allowed := raisedBy(it.Answer, &at)
	var err error
	*run, err = runState.Update(ctx, func(r RunState) RunState {
		r.Asked = Reached{}
		if allowed && at.Scope != scopeThread {
			r.Raised = raise(r.Raised, at.Account, by)
		}
		return r
	})
	if err == nil && allowed && at.Scope == scopeThread {
		*thread, err = threadState.Update(ctx, func(t ThreadState) ThreadState {
			t.Raised = raise(t.Raised, at.Account, by)
			return t
		})
	}
	if err == nil && !allowed {
		return b.ended(&at)
	}
	return err
}

// raisedBy reads an answer. One that cannot be read is a no.
func raisedBy(answer *holdfast.Answer, at *Reached) (by int64, allowed bool) {
	var said struct {
		Allow bool         `json:"allow"`
		Raise *json.Number `json:"raise"`
	}
	if answer.Declined || json.Unmarshal(answer.Payload, &said) != nil || !said.Allow {
		return 0, false
	}
	if said.Raise == nil {
		return at.Base, true
	}
	if at.Unit == unitCost {
		by, err := ParseMoney(said.Raise.String())
		return int64(by), err == nil && by > 0
	}
	by, err := strconv.ParseInt(said.Raise.String(), 10, 64)
	return by, err == nil && by > 0 && by <= store.MaxAmount
}
