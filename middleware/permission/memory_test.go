package permission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/store"
)

// The memory of answers: in the run, in the thread and, in the ledger, for the user.

// TestPermissionRemembered: an answer applies to later calls of the same tool by the same
// agent about which the same rule asks, as long as its scope lasts.
func TestPermissionRemembered(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"run", "thread", "user"} {
		for allow, want := range map[bool]string{true: "run",
			false: "Not allowed: the person has refused calls like this one."} {
			p := newPermissionRun(t, refundRules)
			payload := fmt.Sprintf(`{"allow":%v,"remember":%q}`, allow, scope)
			p.start(permissionAnswered(p.call(`refund {"amount":50}`), payload))
			p.start(permissionAnswered(p.call(`refund {"amount":50}`), payload)) // once more, after a crash
			same, otherTool, otherRule := p.call(`refund {"amount":60}`), p.call(`refund_all {"amount":60}`),
				p.call(`unheard_of {}`)
			if got := p.batch(same, otherTool, otherRule); !slices.Equal(got, []string{want, "ask", "ask"}) {
				t.Errorf("%s %v: got %q", scope, allow, got)
			}
			p.At.Agent = "b"
			if got := p.batch(same); allow && got[0] != "run" || !allow && got[0] != "ask" {
				t.Errorf("%s %v: another agent: got %q", scope, allow, got) // what is approved stays so for this call
			}
			p.m.AfterIteration(p.Context(), &p.At, &holdfast.IterationResult{})
			if got := p.batch(same); got[0] != "ask" {
				t.Errorf("%s %v: another agent, a later iteration: got %q", scope, allow, got)
			}
		}
	}
}

// TestPermissionOwnAnswerFirst: the answer about this very call takes precedence over a
// remembered one.
func TestPermissionOwnAnswerFirst(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	one, two := p.call(`refund {"amount":50}`), p.call(`refund {"amount":60}`)
	if got := p.start(permissionAnswered(one, `{"allow":true,"remember":"user"}`)); got != "ran" {
		t.Error(got)
	}
	if got := p.start(permissionAnswered(two, `{"allow":false}`)); !strings.Contains(got, "did not allow") {
		t.Error(got)
	}
	// Of two answers to be remembered, the no prevails.
	p.start(permissionAnswered(two, `{"allow":false,"remember":"user"}`))
	if got := p.batch(p.call(`refund {"amount":70}`)); !strings.Contains(got[0], "refused") {
		t.Errorf("a yes and a no: %q", got)
	}
}

func TestPermissionExact(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	p.start(permissionAnswered(p.call(`mail {"to":"x","cc":"y"}`), `{"allow":true,"remember":"thread"}`))
	got := p.batch(p.call(`mail {"cc":"y", "to":"x"}`), p.call(`mail {"to":"x"}`))
	if !slices.Equal(got, []string{"run", "ask"}) {
		t.Errorf("got %q", got)
	}
}

// TestPermissionWithoutALedger: if it cannot be read the person is asked; an answer that
// it cannot keep applies to its own call.
func TestPermissionWithoutALedger(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	p.start(permissionAnswered(p.call(`refund {}`), `{"allow":true,"remember":"user"}`))
	for name, ledger := range map[string]store.Ledger{"broken": &hooktest.Failing{Reserves: -1, Settles: -1, Reads: -1},
		"none": nil} {
		p.Ledger, p.Notices = ledger, nil
		if got := p.batch(holdfast.ToolCall{ID: "later", Name: "refund", Thread: "t"}); got[0] != "ask" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := p.start(permissionAnswered(p.call(`refund {}`), `{"allow":true,"remember":"user"}`)); got != "ran" {
			t.Errorf("%s: got %q", name, got)
		}
		if len(p.Notices) != 1 || !strings.HasPrefix(p.Notices[0], "holdfast.permission_not_remembered {") {
			t.Errorf("%s: the notices are %q", name, p.Notices)
		}
	}
}

// TestForgetPermission: what a user has answered is taken back with the account in the
// notice.
func TestForgetPermission(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	for _, answer := range []string{`{"allow":true,"remember":"user"}`, `{"allow":false,"remember":"user"}`} {
		p.Notices = nil
		p.start(permissionAnswered(p.call(`refund {}`), answer))
		var said struct{ Account string }
		_, value, _ := strings.Cut(p.Notices[0], " ")
		if err := json.Unmarshal([]byte(value), &said); err != nil ||
			!strings.HasPrefix(said.Account, "permission/ann/") {
			t.Fatalf("got %q, %v", p.Notices, err)
		}
		p.m.AfterIteration(p.Context(), &p.At, &holdfast.IterationResult{})
		if got := p.batch(p.call(`refund {}`)); got[0] == "ask" {
			t.Errorf("%s: it was not remembered", answer)
		}
		p.m.AfterIteration(p.Context(), &p.At, &holdfast.IterationResult{})
		for range 2 { // to forget twice is no error
			if err := permission.Forget(p.Context(), p.Ledger, "acme", said.Account); err != nil {
				t.Error(err)
			}
		}
		if got := p.batch(p.call(`refund {}`)); got[0] != "ask" {
			t.Errorf("%s: after it was forgotten: %q", answer, got)
		}
	}
	if err := permission.Forget(p.Context(), p.Ledger, "acme", "budget/ann"); err == nil ||
		!strings.Contains(err.Error(), "permission/") {
		t.Errorf("another account: %v", err)
	}
	if err := permission.Forget(p.Context(), &hooktest.Failing{Reserves: -1, Settles: -1, Reads: -1}, "acme",
		"permission/ann/x"); !errors.Is(err, hooktest.ErrNoStore) {
		t.Errorf("a broken ledger: %v", err)
	}
}

// TestPermissionStates: what is remembered survives being stored, and is bounded.
func TestPermissionStates(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	for i := range 300 {
		p.start(permissionAnswered(p.call(fmt.Sprintf(`mail {"to":%d}`, i)), `{"allow":true,"remember":"thread"}`))
	}
	p.start(permissionAnswered(p.call(`refund {}`), `{"allow":true,"remember":"run"}`))
	stored := p.Stored()
	p.Crash()
	p.m.AfterIteration(p.Context(), &p.At, &holdfast.IterationResult{})
	if got := p.batch(p.call(`mail {"to":0}`), p.call(`mail {"to":299}`), p.call(`refund {}`)); !slices.Equal(got,
		[]string{"ask", "run", "run"}) {
		t.Errorf("got %q", got)
	}
	if len(stored) > 120<<10 {
		t.Errorf("256 answers take %d bytes", len(stored))
	}
}

func TestPermissionStatesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"holdfast.tool_permission", "holdfast.tool_permission_run"} {
		p := newPermissionRun(t, refundRules)
		p.Restore(`{"states":{"` + name + `":{"remembered":"x"}}}`)
		var known *holdfast.Error
		b := holdfast.NewBatch(&p.At, []holdfast.ToolCall{p.call("refund {}")})
		if err := p.m.Batch(p.Context(), b); !errors.As(err, &known) || known.Code != codes.StateUnreadable {
			t.Errorf("%s: the batch: %v", name, err)
		}
		for _, call := range []holdfast.ToolCall{p.call("refund {}"),
			permissionAnswered(p.call("refund {}"), `{"allow":true,"remember":"thread"}`)} {
			var end *holdfast.EndRun
			next := func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
				t.Errorf("%s: the call got through", name)
				return holdfast.ToolResult{}, nil
			}
			if _, err := p.m.Tool(next)(p.Context(), nil, call); !errors.As(err, &end) ||
				end.Err.Code != codes.StateUnreadable {
				t.Errorf("%s: the tool: %v", name, err)
			}
		}
		p.m.AfterIteration(p.Context(), &p.At, &holdfast.IterationResult{}) // there is nothing to forget
	}
}

// TestPermissionClock: reservations have the time of the given clock.
func TestPermissionClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newPermissionRun(t, "")
	p.m = permission.New(permission.Options{
		Now:   func() time.Time { return at },
		Rules: []permission.Rule{{Tool: "*", Then: "ask", Remember: []permission.Scope{"user"}}},
	})
	recorder := &permissionLedgerLog{Ledger: memstore.New()}
	p.Ledger = recorder
	p.start(permissionAnswered(p.call("x {}"), `{"allow":false,"remember":"user"}`))
	if len(recorder.made) != 1 || !recorder.made[0].Now.Equal(at) || recorder.made[0].Tenant != "acme" ||
		recorder.made[0].Entries[0].Amount != 2 {
		t.Errorf("got %+v", recorder.made)
	}
	want := []string{"holdfast.tool_permission", "holdfast.tool_permission_run"}
	var names []string
	for _, s := range p.m.States {
		names = append(names, s.StateName())
	}
	if !reflect.DeepEqual(names, want) || p.m.Name != want[0] {
		t.Errorf("%s has the states %q", p.m.Name, names)
	}
}

type permissionLedgerLog struct {
	store.Ledger
	made []store.Reservation
}

func (l *permissionLedgerLog) Reserve(ctx context.Context, r *store.Reservation) error {
	l.made = append(l.made, *r)
	return l.Ledger.Reserve(ctx, r)
}
