package permission

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// A user's answer is an account of the ledger with two possible reservations, one for yes
// and one for no. Each counts once, however often it is made, and is never settled, so
// the answer stays until Forget removes it. A yes counts 1 and a no counts 2, so that the
// no prevails if both are there.
const (
	accounts    = "permission/"
	amountAllow = 1
	amountDeny  = 2
)

// reservations returns the ids of an account's reservations by the answer.
func reservations(account string) map[bool]string {
	return map[bool]string{true: account + "/allow", false: account + "/deny"}
}

// accountOf returns the name of an answer's account. The hash comes last, so that no
// user's name can be mistaken for another's.
func accountOf(user string, r Remembered) string {
	return accounts + user + "/" + hash(plainJSON([]string{r.Agent, r.Tool, r.Rule, r.Args}))
}

// findForUser looks for a user's answer. If it cannot be read it counts as unknown, so
// that the person is asked.
func findForUser(ctx context.Context, who holdfast.Principal, about Remembered) (known, allow bool) {
	ledger, err := store.LedgerFrom(ctx)
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
	ledger, err := store.LedgerFrom(ctx)
	if err != nil {
		return err
	}
	account, amount := accountOf(who.User, r), int64(amountDeny)
	if r.Allow {
		amount = amountAllow
	}
	return ledger.Reserve(ctx, &store.Reservation{
		Tenant: who.Tenant, ID: reservations(account)[r.Allow], Now: p.now(),
		Entries: []store.Entry{{Account: account, Amount: amount}},
	})
}

// Forget takes back an answer that was remembered for a user, so that the next call is
// asked about again. The account is the one in [NoticeRemembered]. Forgetting what was
// never remembered is not an error.
func Forget(ctx context.Context, ledger store.Ledger, tenant, account string) error {
	if !strings.HasPrefix(account, accounts) {
		return fmt.Errorf("%q is not the account of a remembered permission: those begin with %s", account, accounts)
	}
	for _, id := range reservations(account) {
		if err := ledger.Settle(ctx, tenant, id, nil); err != nil {
			return fmt.Errorf("forget the permission %s: %w", account, err)
		}
	}
	return nil
}
