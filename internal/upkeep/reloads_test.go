package upkeep_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
)

// TestThreadOf: a run is found by its id while it runs, however many other threads were active since, and when it
// has ended, as the last one of a thread; never for another user, and of several, in the newest thread.
func TestThreadOf(t *testing.T) {
	for _, complete := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := statusStore(t, complete)
			r := upkeep.Reloads{Keeper: e.Keeper}
			post := func(who holdfast.Principal, id, run, agent string) {
				t.Helper()
				in := looptest.RunInput(id, run, looptest.UserSays("u "+run, "hi"))
				if _, err := e.Owner.Post(t.Context(), who, agent, in); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			want := func(who holdfast.Principal, run, thread string) {
				t.Helper()
				got, err := r.ThreadOf(t.Context(), who, run)
				if got != thread || (thread == "") != (looptest.Code(err) == codes.NotFound) {
					t.Errorf("index %v: %s runs %s: %v, want %q", complete, got, run, err, thread)
				}
			}
			post(looptest.Alice, "old", "same", "idle")
			post(looptest.Alice, "long", "r1", "running")
			want(looptest.Alice, "r1", "long")
			want(bob, "r1", "")
			want(holdfast.Principal{Tenant: "other", User: looptest.Alice.User}, "r1", "")
			post(looptest.Alice, "new", "same", "idle")
			want(looptest.Alice, "same", "new")
			post(looptest.Alice, "new", "next", "idle")
			want(looptest.Alice, "same", "old")
			want(looptest.Alice, "next", "new")
			for i := range 100 {
				post(looptest.Alice, fmt.Sprint(i), fmt.Sprint("other", i), "idle")
			}
			if complete {
				want(looptest.Alice, "r1", "long")
			}
			want(looptest.Alice, "next", "") // too many others were active since
			want(looptest.Alice, "other99", "99")
		})
	}
}
