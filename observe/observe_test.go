package observe_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// TestJoin: each function of the joined observer calls those of all that have it, in
// order, with what it was given.
func TestJoin(t *testing.T) {
	var said []string
	one := observe.Observer{
		Grown: func(at holdfast.Iteration, bytes int64) { said = append(said, fmt.Sprint("one ", at.Thread, bytes)) },
	}
	two := observe.Observer{
		Grown: func(at holdfast.Iteration, bytes int64) {
			said = append(said, fmt.Sprint("two ", at.Thread, bytes))
		},
		LeaseRenewed: func(err error) { said = append(said, fmt.Sprint("lease ", err)) },
	}
	all := observe.Join(one, two)
	all.Grown(holdfast.Iteration{Thread: "t"}, 7)
	all.LeaseRenewed(nil)
	all.LeaseRenewed(errors.New("gone"))
	if want := []string{"one t7", "two t7", "lease <nil>", "lease gone"}; !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

// TestJoinCommitted: the one that is called for every commit is joined by hand.
func TestJoinCommitted(t *testing.T) {
	var said []string
	say := func(who string) observe.Observer {
		return observe.Observer{Committed: func(at holdfast.Iteration, c *store.Commit, took time.Duration, err error) {
			said = append(said, fmt.Sprint(who, " ", at.Thread, " ", c.ID, " ", took, " ", err))
		}}
	}
	all := observe.Join(say("one"), observe.Observer{}, say("two"))
	all.Committed(holdfast.Iteration{Thread: "t"}, &store.Commit{ID: "c1"}, time.Second, nil)
	if want := []string{"one t c1 1s <nil>", "two t c1 1s <nil>"}; !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

// TestJoinSetsAll: a function that nobody has set can still be called.
func TestJoinSetsAll(t *testing.T) {
	v := reflect.ValueOf(observe.Join())
	for i := range v.NumField() {
		f := v.Field(i)
		args := make([]reflect.Value, f.Type().NumIn())
		for n := range args {
			args[n] = reflect.Zero(f.Type().In(n))
		}
		f.Call(args)
	}
}

// TestListsAreWhole: a result that is declared is in its list, which is what metrics
// count by.
func TestListsAreWhole(t *testing.T) {
	listed := map[string]int{
		"Outcome":        len(observe.Outcomes()) - 4, // the four of the root package
		"TakeoverResult": len(observe.TakeoverResults()),
		"ModelResult":    len(observe.ModelResults()),
		"ToolResult":     len(observe.ToolResults()),
		"OutsideResult":  len(observe.OutsideResults()),
		"NextStep":       len(observe.NextSteps()),
		"PromptCut":      len(observe.PromptCuts()),
	}
	f, err := parser.ParseFile(token.NewFileSet(), "observe.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		switch typ := v.Type.(type) {
		case *ast.Ident:
			declared[typ.Name]++
		case *ast.SelectorExpr:
			declared[typ.Sel.Name]++
		}
		return true
	})
	if !maps.Equal(declared, listed) {
		t.Errorf("declared are %v, listed are %v", declared, listed)
	}
}

func ExampleObserver() {
	o := observe.Join(observe.Observer{RunEnded: nil},
		observe.Observer{Notified: func(at holdfast.Iteration, name string) { fmt.Println(at.Thread, name) }})
	o.Notified(holdfast.Iteration{Thread: "order-17"}, "budget_low")
	// Output: order-17 budget_low
}
