package permission

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// maxRemembered bounds the answers in a state. The oldest is dropped first, and its
// question asked again.
const maxRemembered = 256

// withRemembered returns a copy of the list with one more answer, which replaces an
// earlier one to the same question.
func withRemembered(list []Remembered, r Remembered) []Remembered {
	next := slices.DeleteFunc(slices.Clone(list), func(old Remembered) bool { return old.about(r) })
	next = append(next, r)
	return next[max(0, len(next)-maxRemembered):]
}

// about reports whether both are answers to the same question.
func (r Remembered) about(other Remembered) bool {
	other.Allow = r.Allow
	return r == other
}

// recall settles a question that has been answered: this call was approved before, or an
// answer for calls like it was remembered.
func (p *permissions) recall(ctx context.Context, call *holdfast.ToolCall, v *verdict) error {
	if v.then != Ask {
		return nil
	}
	run, err := runState.Load(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(run.Approved, approvalOf(call)) {
		v.then = Allow
		return nil
	}
	thread, err := threadState.Load(ctx)
	if err != nil {
		return err
	}
	about := v.about(ctx, call)
	for _, scope := range v.rule.Remember {
		known, allow := false, false
		switch scope {
		case ScopeRun:
			known, allow = findRemembered(run.Remembered, about)
		case ScopeThread:
			known, allow = findRemembered(thread.Remembered, about)
		case ScopeUser:
			known, allow = findForUser(ctx, call.Principal, about)
		}
		if known {
			return v.recalled(ctx, call, allow)
		}
	}
	return nil
}

// recalled applies a remembered answer. A call that is allowed stays allowed, even if the
// answer has been taken back or cannot be read by the time the call starts again.
func (v *verdict) recalled(ctx context.Context, call *holdfast.ToolCall, allow bool) error {
	if allow {
		v.then = Allow
		return approve(ctx, call)
	}
	v.then, v.by, v.text = Deny, byRemembered, "Not allowed: the person has refused calls like this one."
	return nil
}

// about returns the question that a call raises, as an answer without a decision.
func (v *verdict) about(ctx context.Context, call *holdfast.ToolCall) Remembered {
	return Remembered{Agent: holdfast.IterationFrom(ctx).Agent, Tool: call.Name, Rule: v.rule.name, Args: v.args}
}

func findRemembered(list []Remembered, about Remembered) (known, allow bool) {
	i := slices.IndexFunc(list, about.about)
	return i >= 0, i >= 0 && list[i].Allow
}

// approvalOf identifies a call within its thread. In a fork the call is asked about
// again, because there it would be made once more.
func approvalOf(call *holdfast.ToolCall) string { return call.Thread + "/" + call.ID }

// approve notes that a call may be made until its iteration is over.
func approve(ctx context.Context, call *holdfast.ToolCall) error {
	_, err := runState.Update(ctx, func(s RunState) RunState {
		if id := approvalOf(call); !slices.Contains(s.Approved, id) {
			s.Approved = append(slices.Clip(s.Approved), id)
		}
		return s
	})
	return err
}

// forgetApproved drops the approvals of an iteration whose calls are done.
func forgetApproved(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
	if s, err := runState.Load(ctx); err != nil || len(s.Approved) == 0 {
		return // a state that cannot be read has ended the run before
	}
	_, _ = runState.Update(ctx, func(s RunState) RunState {
		s.Approved = nil
		return s
	})
}

// remember stores an answer for later calls. If one for the user cannot be stored, it
// applies to this call only, and the notice says so.
func (p *permissions) remember(
	ctx context.Context, call *holdfast.ToolCall, v *verdict, scope Scope, allow bool,
) error {
	r := v.about(ctx, call)
	r.Allow = allow
	notice := map[string]any{"tool": call.Name, "rule": v.rule.name, "scope": scope, "allow": allow}
	var err error
	switch scope {
	case ScopeRun:
		_, err = runState.Update(ctx, func(s RunState) RunState {
			s.Remembered = withRemembered(s.Remembered, r)
			return s
		})
	case ScopeThread:
		_, err = threadState.Update(ctx, func(s ThreadState) ThreadState {
			s.Remembered = withRemembered(s.Remembered, r)
			return s
		})
	case ScopeUser:
		notice["account"] = accountOf(call.Principal.User, r)
		if p.rememberForUser(ctx, call.Principal, r) != nil {
			notify(ctx, NoticeNotRemembered, notice)
			return nil
		}
	}
	if err == nil {
		notify(ctx, NoticeRemembered, notice)
	}
	return err
}
