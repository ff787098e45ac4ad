package permission

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// maxRemembered bounds what a state holds; the oldest answer is forgotten first, and
// then its question is asked again.
const maxRemembered = 256

// withRemembered returns the list with one more answer, in the place of an earlier one.
func withRemembered(list []Remembered, r Remembered) []Remembered {
	next := slices.DeleteFunc(slices.Clone(list), func(old Remembered) bool { return old.about(r) })
	next = append(next, r)
	return next[max(0, len(next)-maxRemembered):]
}

// about reports whether both answer the same question.
func (r Remembered) about(other Remembered) bool {
	other.Allow = r.Allow
	return r == other
}

// recall turns a question into a decision if its answer is known: this call was
// approved, or the answer to another one was remembered.
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

// recalled decides as a person has before. What is allowed stays so for this call,
// even if the answer is taken back, or cannot be read, when the call starts again.
func (v *verdict) recalled(ctx context.Context, call *holdfast.ToolCall, allow bool) error {
	if allow {
		v.then = Allow
		return approve(ctx, call)
	}
	v.then, v.by, v.text = Deny, byRemembered, "Not allowed: the person has refused calls like this one."
	return nil
}

// about is the question that a call raises.
func (v *verdict) about(ctx context.Context, call *holdfast.ToolCall) Remembered {
	return Remembered{Agent: holdfast.IterationFrom(ctx).Agent, Tool: call.Name, Rule: v.rule.name, Args: v.args}
}

func findRemembered(list []Remembered, about Remembered) (known, allow bool) {
	i := slices.IndexFunc(list, about.about)
	return i >= 0, i >= 0 && list[i].Allow
}

// approvalOf names a call as long as it stays in its thread: in a fork it is asked
// about again, because there it would be made once more.
func approvalOf(call *holdfast.ToolCall) string { return call.Thread + "/" + call.ID }

// approve notes that a call may be made, until its iteration is over.
func approve(ctx context.Context, call *holdfast.ToolCall) error {
	_, err := runState.Update(ctx, func(s RunState) RunState {
		if id := approvalOf(call); !slices.Contains(s.Approved, id) {
			s.Approved = append(slices.Clip(s.Approved), id)
		}
		return s
	})
	return err
}

// forgetApproved ends the approvals of an iteration whose calls are done.
func forgetApproved(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
	if s, err := runState.Load(ctx); err != nil || len(s.Approved) == 0 {
		return // what cannot be read has ended the run before
	}
	_, _ = runState.Update(ctx, func(s RunState) RunState {
		s.Approved = nil
		return s
	})
}

// remember keeps an answer for later calls. A user's answer that cannot be kept
// counts for this call only, and the notice says so.
func (p *permissions) remember(ctx context.Context, call *holdfast.ToolCall, v *verdict, scope Scope, allow bool) error {
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
