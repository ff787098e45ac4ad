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
	if committed := committedOf(observers); len(committed) > 1 {
		joined.Committed = func(at holdfast.Iteration, c *store.Commit, took time.Duration, err error) {
			for _, f := range committed {
				f(at, c, took, err)
			}
		}
	}
	return joined
}

// committedOf returns the Committed functions that are set. They are joined without
// reflection, because they alone are called for every commit.
func committedOf(observers []Observer) (set []func(holdfast.Iteration, *store.Commit, time.Duration, error)) {
	for _, o := range observers {
		if o.Committed != nil {
			set = append(set, o.Committed)
		}
	}
	return set
}
