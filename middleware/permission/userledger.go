package permission

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// A user's answer is an account of the ledger, to which each of two reservations
// adds its amount once, however often it is made. They are never settled, so that
// the answer stays until Forget does it. A yes adds 1 and a no adds 2: if
// two answers to one question meet, the no counts.
const (
	accounts    = "permission/"
	amountAllow = 1
	amountDeny  = 2
)

// reservations are the ids of an account's reservations, by the answer.
func reservations(account string) map[bool]string {
	return map[bool]string{true: account + "/allow", false: account + "/deny"}
}

// accountOf names what a user has answered. The hash is the last part, so that no
// user's name can be taken for another's.
func accountOf(user string, r Remembered) string {
	return accounts + user + "/" + hash(plainJSON([]string{r.Agent, r.Tool, r.Rule, r.Args}))
}

// findForUser looks for a user's answer. What cannot be read is not known, so that
// the person is asked.
func findForUser(ctx context.Context, who holdfast.Principal, about Remembered) (known, allow bool) {
	ledger, err := holdfast.LedgerFrom(ctx)
	if err != nil {
		return false, false
	}
	used, err := ledger.Used(ctx, who.Tenant, []string{accountOf(who.User, about)})
	if err != nil || used[0] == 0 {
		return false, false
	}
	return true, used[0] == amountAllow
}

func (p *permissions) rememberForUser(ctx context.Context, who holdfast.Principal, r Remembered) error {
	ledger, err := holdfast.LedgerFrom(ctx)
	if err != nil {
		return err
	}
	account, amount := accountOf(who.User, r), int64(amountDeny)
	if r.Allow {
		amount = amountAllow
	}
	return ledger.Reserve(ctx, &holdfast.Reservation{
		Tenant: who.Tenant, ID: reservations(account)[r.Allow], Now: p.now(),
		Entries: []holdfast.Entry{{Account: account, Amount: amount}},
	})
}

// Forget takes back an answer that was remembered for a user: the next
// call is asked about again. The account is the one that the notice
// holdfast.permission_remembered has named. To forget what was never remembered is
// no error.
func Forget(ctx context.Context, ledger holdfast.Ledger, tenant, account string) error {
	if !strings.HasPrefix(account, accounts) {
		return fmt.Errorf("%q is no account of a remembered permission: those begin with %s", account, accounts)
	}
	for _, id := range reservations(account) {
		if err := ledger.Settle(ctx, tenant, id, nil); err != nil {
			return fmt.Errorf("forget the permission %s: %w", account, err)
		}
	}
	return nil
}
