package audit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// TestMender: threads that a version without an index has written are entered where their states
// say, those that are there by mistake are taken out, and what is right stays untouched.
func TestMender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		lists := map[string]store.Query{
			"due":    {List: store.List{Name: store.ListDue}, Limit: 10},
			"asking": {List: store.List{Name: store.ListAsking, Tenant: "acme", Group: "alice"}, Limit: 10},
		}
		waits := thread.Call{ID: "c", Outside: &thread.OutsideCall{Waits: true, ExpiresAt: time.Now().Add(time.Hour)}}
		asks := thread.Call{ID: "c", Interrupt: &agui.Interrupt{ID: "i"}}
		put := func(id, status string, calls ...thread.Call) *store.Commit {
			var st thread.State
			text := fmt.Sprintf(`{"dataFormat":1,"agent":"a","phase":%q,"run":"r"}`, status)
			if err := st.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
			st.Calls = calls
			c := &store.Commit{
				Key: store.ThreadKey{Tenant: "acme", Thread: id}, ID: "c1", Expect: store.Position{Next: 1},
				User:  "alice",
				Fence: store.Fence{Epoch: 1, Nonce: "f"}, UpdatedAt: time.Now(),
			}
			thread.Save(c, &st)
			return c
		}
		right, before, asked := put("right", "idle", waits), put("before", "idle", waits),
			put("asks", "interrupted", asks)
		mistake, running := put("mistake", "idle"), put("running", "running", waits)
		before.Listings, asked.Listings, mistake.Listings = nil, nil, right.Listings
		all := []*store.Commit{right, before, asked, mistake, running}
		for _, c := range all {
			if err := db.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		newID := func(string) string { n++; return fmt.Sprint("mended", n) }
		for round, want := range []map[string]bool{{"before": true, "asks": true, "mistake": true}, {}} {
			m := audit.NewMender(db, newID)
			for _, c := range all {
				problems := looptest.Must(m.Mend(t.Context(), c.Key))(t)
				if (len(problems) == 1) != want[c.Key.Thread] {
					t.Errorf("round %d, thread %s: %v", round, c.Key.Thread, problems)
				}
			}
		}
		for name, want := range map[string][]string{"due": {"before", "right"}, "asking": {"asks"}} {
			var got []string
			for _, f := range looptest.Must(db.Find(t.Context(), lists[name]))(t) {
				got = append(got, f.Key.Thread)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s has %v, want %v", name, got, want)
			}
		}
		if looptest.Must(db.Head(t.Context(), right.Key))(t).ETag != "c1" {
			t.Error("what was right was written to")
		}
		mended := looptest.Must(db.Head(t.Context(), before.Key))(t).ETag
		if mended == "c1" || thread.PublicETag(mended) != "c1" {
			t.Errorf("the ETag that clients are told of a mended thread: that of %s", mended)
		}
	})
}
