package observe

import "reflect"

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
	return joined
}
