package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// PermissionState is what [ToolPermission] remembers in a thread.
type PermissionState struct {
	Remembered []RememberedPermission `json:"remembered,omitempty"`
}

// PermissionRunState is what [ToolPermission] remembers in a run.
type PermissionRunState struct {
	Remembered []RememberedPermission `json:"remembered,omitempty"`
	// Approved are the calls of this iteration, as thread/id, that may be made: they
	// are not asked about again when their tool asks something itself.
	Approved []string `json:"approved,omitempty"`
}

// RememberedPermission is an answer that holds for later calls, too.
type RememberedPermission struct {
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
	// Rule names the rule that asked.
	Rule string `json:"rule"`
	// Args is a hash of the arguments, where they have to be the same.
	Args  string `json:"args,omitempty"`
	Allow bool   `json:"allow"`
}

var permissionState = holdfast.RegisterState(holdfast.StateSpec[PermissionState]{
	Name: "holdfast.tool_permission", Version: 1, Scope: holdfast.ScopeThread,
})

var permissionRunState = holdfast.RegisterState(holdfast.StateSpec[PermissionRunState]{
	Name: "holdfast.tool_permission_run", Version: 1, Scope: holdfast.ScopeRun,
})

// maxRemembered bounds what a state holds; the oldest answer is forgotten first, and
// then its question is asked again.
const maxRemembered = 256

// withRemembered returns the list with one more answer, in the place of an earlier one.
func withRemembered(list []RememberedPermission, r RememberedPermission) []RememberedPermission {
	next := slices.DeleteFunc(slices.Clone(list), func(old RememberedPermission) bool { return old.about(r) })
	next = append(next, r)
	return next[max(0, len(next)-maxRemembered):]
}

// about reports whether both answer the same question.
func (r RememberedPermission) about(other RememberedPermission) bool {
	other.Allow = r.Allow
	return r == other
}

// recall turns a question into a decision if its answer is known: this call was
// approved, or the answer to another one was remembered.
func (p *permissions) recall(ctx context.Context, call *holdfast.ToolCall, v *verdict) error {
	if v.then != PermissionAsk {
		return nil
	}
	run, err := permissionRunState.Load(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(run.Approved, approvalOf(call)) {
		v.then = PermissionAllow
		return nil
	}
	thread, err := permissionState.Load(ctx)
	if err != nil {
		return err
	}
	about := v.about(ctx, call)
	for _, scope := range v.rule.Remember {
		known, allow := false, false
		switch scope {
		case PermissionRun:
			known, allow = findRemembered(run.Remembered, about)
		case PermissionThread:
			known, allow = findRemembered(thread.Remembered, about)
		case PermissionUser:
			known, allow = findForUser(ctx, call.Principal, about)
		}
		if known {
			return v.recalled(ctx, call, allow)
		}
	}
	return nil
}

// recalled decides as a person has before. What is allowed stays so for this call,
// even if the answer is taken back, or cannot be read, when the call starts again.
func (v *verdict) recalled(ctx context.Context, call *holdfast.ToolCall, allow bool) error {
	if allow {
		v.then = PermissionAllow
		return approve(ctx, call)
	}
	v.then, v.by, v.text = PermissionDeny, byRemembered, "Not allowed: the person has refused calls like this one."
	return nil
}

// about is the question that a call raises.
func (v *verdict) about(ctx context.Context, call *holdfast.ToolCall) RememberedPermission {
	return RememberedPermission{Agent: holdfast.IterationFrom(ctx).Agent, Tool: call.Name, Rule: v.rule.name, Args: v.args}
}

func findRemembered(list []RememberedPermission, about RememberedPermission) (known, allow bool) {
	i := slices.IndexFunc(list, about.about)
	return i >= 0, i >= 0 && list[i].Allow
}

// approvalOf names a call as long as it stays in its thread: in a fork it is asked
// about again, because there it would be made once more.
func approvalOf(call *holdfast.ToolCall) string { return call.Thread + "/" + call.ID }

// approve notes that a call may be made, until its iteration is over.
func approve(ctx context.Context, call *holdfast.ToolCall) error {
	_, err := permissionRunState.Update(ctx, func(s PermissionRunState) PermissionRunState {
		if id := approvalOf(call); !slices.Contains(s.Approved, id) {
			s.Approved = append(slices.Clip(s.Approved), id)
		}
		return s
	})
	return err
}

// forgetApproved ends the approvals of an iteration whose calls are done.
func forgetApproved(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
	if s, err := permissionRunState.Load(ctx); err != nil || len(s.Approved) == 0 {
		return // what cannot be read has ended the run before
	}
	_, _ = permissionRunState.Update(ctx, func(s PermissionRunState) PermissionRunState {
		s.Approved = nil
		return s
	})
}

// remember keeps an answer for later calls. A user's answer that cannot be kept
// counts for this call only, and the notice says so.
func (p *permissions) remember(ctx context.Context, call *holdfast.ToolCall, v *verdict, scope PermissionScope, allow bool) error {
	r := v.about(ctx, call)
	r.Allow = allow
	notice := map[string]any{"tool": call.Name, "rule": v.rule.name, "scope": scope, "allow": allow}
	var err error
	switch scope {
	case PermissionRun:
		_, err = permissionRunState.Update(ctx, func(s PermissionRunState) PermissionRunState {
			s.Remembered = withRemembered(s.Remembered, r)
			return s
		})
	case PermissionThread:
		_, err = permissionState.Update(ctx, func(s PermissionState) PermissionState {
			s.Remembered = withRemembered(s.Remembered, r)
			return s
		})
	case PermissionUser:
		notice["account"] = accountOf(call.Principal.User, r)
		if p.rememberForUser(ctx, call.Principal, r) != nil {
			permissionNotice(ctx, "holdfast.permission_not_remembered", notice)
			return nil
		}
	}
	if err == nil {
		permissionNotice(ctx, "holdfast.permission_remembered", notice)
	}
	return err
}

// A user's answer is an account of the ledger, to which each of two reservations
// adds its amount once, however often it is made. They are never settled, so that
// the answer stays until ForgetPermission does it. A yes adds 1 and a no adds 2: if
// two answers to one question meet, the no counts.
const (
	permissionAccounts = "permission/"
	amountAllow        = 1
	amountDeny         = 2
)

// permissionReservations are the ids of an account's reservations, by the answer.
func permissionReservations(account string) map[bool]string {
	return map[bool]string{true: account + "/allow", false: account + "/deny"}
}

// accountOf names what a user has answered. The hash is the last part, so that no
// user's name can be taken for another's.
func accountOf(user string, r RememberedPermission) string {
	return permissionAccounts + user + "/" + permissionHash(plainJSON([]string{r.Agent, r.Tool, r.Rule, r.Args}))
}

func permissionHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// findForUser looks for a user's answer. What cannot be read is not known, so that
// the person is asked.
func findForUser(ctx context.Context, who holdfast.Principal, about RememberedPermission) (known, allow bool) {
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

func (p *permissions) rememberForUser(ctx context.Context, who holdfast.Principal, r RememberedPermission) error {
	ledger, err := holdfast.LedgerFrom(ctx)
	if err != nil {
		return err
	}
	account, amount := accountOf(who.User, r), int64(amountDeny)
	if r.Allow {
		amount = amountAllow
	}
	return ledger.Reserve(ctx, &holdfast.Reservation{
		Tenant: who.Tenant, ID: permissionReservations(account)[r.Allow], Now: p.now(),
		Entries: []holdfast.Entry{{Account: account, Amount: amount}},
	})
}

// ForgetPermission takes back an answer that was remembered for a user: the next
// call is asked about again. The account is the one that the notice
// holdfast.permission_remembered has named. To forget what was never remembered is
// no error.
func ForgetPermission(ctx context.Context, ledger holdfast.Ledger, tenant, account string) error {
	if !strings.HasPrefix(account, permissionAccounts) {
		return fmt.Errorf("%q is no account of a remembered permission: those begin with %s", account, permissionAccounts)
	}
	for _, id := range permissionReservations(account) {
		if err := ledger.Settle(ctx, tenant, id, nil); err != nil {
			return fmt.Errorf("forget the permission %s: %w", account, err)
		}
	}
	return nil
}
