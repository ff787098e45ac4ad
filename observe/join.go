package observe

import (
	"reflect"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Join returns an Observer that calls each of several, in order. All of its functions are
// set, so a caller need not check them for nil.
func Join(observers ...Observer) Observer {
	var joined Observer
	out := reflect.ValueOf(&joined).Elem()
	for i := range out.NumField() {
		var set []reflect.Value
		for _, o := range observers {
			if f := reflect.ValueOf(o).Field(i); !f.IsNil() {
				set = append(set, f)
			}
		}
		if len(set) == 1 { // no detour
			out.Field(i).Set(set[0])
			continue
		}
		out.Field(i).Set(reflect.MakeFunc(out.Field(i).Type(), func(args []reflect.Value) []reflect.Value {
			for _, f := range set {
				f.Call(args)
			}
			return nil
		}))
	}
	joinFrequent(&joined, observers)
	return joined
}

// joinFrequent joins without reflection what is called for each commit and for each step of an
// iteration.
func joinFrequent(joined *Observer, observers []Observer) {
	if all := setIn(observers, func(o *Observer) committed { return o.Committed }); len(all) > 1 {
		joined.Committed = func(at holdfast.Iteration, c *store.Commit, took time.Duration, err error) {
			for _, f := range all {
				f(at, c, took, err)
			}
		}
	}
	if all := setIn(observers, func(o *Observer) modelCalled { return o.ModelCalled }); len(all) > 1 {
		joined.ModelCalled = func(at holdfast.Iteration, result ModelResult, first, took time.Duration,
			u *holdfast.Usage) {
			for _, f := range all {
				f(at, result, first, took, u)
			}
		}
	}
	if all := setIn(observers, func(o *Observer) promptSent { return o.PromptSent }); len(all) > 1 {
		joined.PromptSent = func(at holdfast.Iteration, p Prompt) {
			for _, f := range all {
				f(at, p)
			}
		}
	}
	if all := setIn(observers, func(o *Observer) toolCalled { return o.ToolCalled }); len(all) > 1 {
		joined.ToolCalled = func(at holdfast.Iteration, tool string, result ToolResult, took time.Duration) {
			for _, f := range all {
				f(at, tool, result, took)
			}
		}
	}
	if all := setIn(observers, func(o *Observer) iterationDone { return o.IterationDone }); len(all) > 1 {
		joined.IterationDone = func(at holdfast.Iteration, results int) {
			for _, f := range all {
				f(at, results)
			}
		}
	}
}

// The functions that are called often.
type (
	committed     = func(holdfast.Iteration, *store.Commit, time.Duration, error)
	modelCalled   = func(at holdfast.Iteration, result ModelResult, first, took time.Duration, usage *holdfast.Usage)
	promptSent    = func(holdfast.Iteration, Prompt)
	toolCalled    = func(holdfast.Iteration, string, ToolResult, time.Duration)
	iterationDone = func(holdfast.Iteration, int)
)

// setIn returns those functions of a kind that are set.
func setIn[F any](observers []Observer, of func(*Observer) F) (set []F) {
	for i := range observers {
		if f := of(&observers[i]); !reflect.ValueOf(f).IsNil() {
			set = append(set, f)
		}
	}
	return set
}
