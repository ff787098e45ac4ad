package owner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// doubling is a schema whose parts each refer to the next one twice, forty times over.
func doubling() string {
	var parts strings.Builder
	for i := range 40 {
		fmt.Fprintf(&parts, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return `{"type":"object","$defs":{` + parts.String() + `"a40":{"type":"object"}},"allOf":[{"$ref":"#/$defs/a0"}]}`
}

// endless is a check that ends only with its budget.
const endless = `{"properties":{"x":{"pattern":"(([a-z]{10}){10}x?){9}$"}}}`

// asksAboutAll is an agent whose model calls a tool of the frontend's, about which a person is
// asked.
func asksAboutAll() holdfast.Agent {
	return holdfast.Agent{
		Name:       "a",
		Model:      looptest.TwoCalls("later", "later2"),
		Middleware: []holdfast.Middleware{looptest.AsksLeave(time.Time{}, "later", "later2")},
	}
}

// offering returns an input that offers the tools with a schema.
func offering(in *agui.RunAgentInput, schema string) *agui.RunAgentInput {
	in.Tools = []agui.Tool{
		{Name: "later", Description: "x", Parameters: []byte(schema)},
		{Name: "later2", Description: "x", Parameters: []byte(schema)},
	}
	return in
}

// TestSchemasOfClientsEnd: edited arguments are checked against the schema that came with
// them, whatever that is.
func TestSchemasOfClientsEnd(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, asksAboutAll())
	for i, c := range []struct{ schema, edited, wrong string }{
		{doubling(), `{}`, ""},
		{doubling(), `[]`, "[] is an array, but it must be an object"},
		{endless, `{"x":"` + strings.Repeat("abc", 20_000) + `"}`,
			`editedArgs: it cannot be checked against the schema of the tool "later`},
	} {
		id := fmt.Sprintf("t%d", i)
		open := looptest.OpenOf(t, looptest.Posted(t, e,
			offering(looptest.RunInput(id, "r1", looptest.UserSays("u", "go")), c.schema)))
		in := offering(looptest.Answers(id, "r2", `{"approved":true,"editedArgs":`+c.edited+`}`, open...), c.schema)
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		if c.wrong == "" {
			looptest.Collect(t, reply, err)
		} else if looptest.Code(err) != codes.InvalidAnswer || !strings.Contains(fmt.Sprint(err), c.wrong) {
			t.Errorf("%s: %v, want %s", id, err, c.wrong)
		}
	}
}

// TestChecksHoldNobodyUp: while checks of 400 answers are under way, more than there are locks,
// other runs begin and end, and the threads in question can be read and deleted. The checks
// end with their requests.
func TestChecksHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 400
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.MaxRuns = 2 * requests }, asksAboutAll())
		release, err := owner.HoldChecks(t.Context(), e.Owner)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, requests)
		var all sync.WaitGroup
		for i := range requests {
			id := fmt.Sprintf("t%d", i)
			open := looptest.OpenOf(t, looptest.Posted(t, e,
				offering(looptest.RunInput(id, "r1", looptest.UserSays("u", "go")), endless)))
			in := offering(looptest.Answers(id, "r2", `{"approved":true,"editedArgs":{"x":"y"}}`, open...), endless)
			all.Go(func() {
				_, err := e.Owner.Post(ctx, looptest.Alice, "", in)
				failed <- err
			})
		}
		synctest.Wait() // all of them wait now
		other := holdfast.Principal{Tenant: "other", User: "bob"}
		for i := range 300 {
			id := fmt.Sprintf("other%d", i)
			reply, err := e.Owner.Post(t.Context(), other, "",
				looptest.RunInput(id, "r1", looptest.UserSays("u", "go")))
			looptest.Collect(t, reply, err)
		}
		if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t7", "", false); err != nil {
			t.Errorf("a thread with an answer that is checked cannot be deleted: %v", err)
		}
		if n := len(failed); n != 0 {
			t.Errorf("%d of %d do not wait", n, requests)
		}
		cancel()
		all.Wait()
		close(failed)
		for err := range failed {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		release()
	})
}
