package upkeep_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestArchive: the log of a run that has ended keeps nothing that the messages hold, and a
// watcher that has seen a part of it gets the rest, from between any two words.
func TestArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, nil, looptest.Wordy())
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		frames, events := looptest.FramesOf(t, reply, err)
		want := looptest.Reduce(events)
		key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
		live, err := db.Records(t.Context(), key, store.Cursor{}, 1000)
		if err != nil || len(live) != len(frames) {
			t.Fatalf("%d records, %d frames: %v", len(live), len(frames), err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()

		if left, err := db.Records(t.Context(), key, store.Cursor{}, 1000); err != nil || len(left) > 0 {
			t.Fatalf("the live log still has %d records: %v", len(left), err)
		}
		stored, err := db.Value(t.Context(), key, store.KindLog, "r1")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"let ", "ünder", "lengthy", `"delta":" all`} {
			if strings.Contains(string(stored), text) {
				t.Errorf("the archive holds %q, which a message holds", text)
			}
		}
		if !strings.Contains(string(stored), "dulci") {
			t.Error("the words of the answer that was given up are lost")
		}
		whole := looptest.Collect(t, looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "r1",
			store.Cursor{}, agui.DialectV1))(t), nil)
		if got := looptest.Reduce(whole); !slices.Equal(got, want) {
			t.Errorf("the replay shows\n%q, want\n%q", got, want)
		}
		for n, f := range frames {
			after, err := store.ParseCursor(f.ID)
			if err != nil {
				t.Fatal(err)
			}
			rest, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", after, agui.DialectV1)
			if n == len(frames)-1 {
				if err != nil || rest != nil {
					t.Errorf("after the last frame: %v, %v", rest, err)
				}
				continue
			}
			_, missing := looptest.FramesOf(t, rest, err)
			if got := looptest.Reduce(append(slices.Clone(events[:n+1]), missing...)); !slices.Equal(got, want) {
				t.Fatalf("with the rest after frame %d, %s, a client shows\n%q, want\n%q", n, f.Data, got, want)
			}
			if err := agui.Verify(slices.Values(append(slices.Clone(events[:n+1]), missing...))); err != nil {
				t.Fatalf("the rest after frame %d: %v", n, err)
			}
		}
		other := store.Cursor{Number: 5, Tag: "zzzzzz"}
		resync, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", other, agui.DialectV1)
		if _, shown := looptest.FramesOf(t, resync, err); !slices.Equal(looptest.Reduce(shown), want) {
			t.Errorf("a cursor of another log is shown %q", looptest.Reduce(shown))
		}
	})
}

// TestArchiveIsUnseen: a client that has read a thread before its log was archived may change it
// with the ETag from then, also while it is archived; not one from before somebody has changed it.
func TestArchiveIsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &interrupted{Store: memstore.New()}
		e := looptest.Start(t, db, nil, looptest.Wordy())
		looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		read := func() string {
			return looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).ETag
		}
		describe := func(title, etag string) error {
			_, err := upkeep.Titles{Keeper: e.Keeper}.Describe(t.Context(), looptest.Alice, "t", etag,
				threads.Description{Title: &title})
			return err
		}
		etag := read()
		db.before = func() {
			db.before = nil
			head := looptest.Must(db.Head(t.Context(), looptest.KeyOf("t")))(t)
			c := &store.Commit{Key: head.Key, ID: thread.UnseenCommit(head.ETag, "c"), Expect: head.Position(),
				User:  head.User,
				Fence: head.Fence, UpdatedAt: head.UpdatedAt}
			if err := db.Store.Commit(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		if err := describe("one", etag); err != nil {
			t.Errorf("an archive in between: %v", err)
		}
		etag = read()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if archived := looptest.Must(db.Head(t.Context(), looptest.KeyOf("t")))(t).ETag; archived == etag ||
			read() != etag {
			t.Errorf("the ETag is %s, and was %s before the log was archived with %s", read(), etag, archived)
		}
		back := threads.Travel{Message: "u1", Preview: true, ETag: etag}
		if shown, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", back); err != nil ||
			shown.Thread.ETag != etag {
			t.Errorf("a preview of a rewind after the archive: %+v, %v", shown, err)
		}
		if _, err := e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{
			Message: "u1", ETag: etag, Thread: "fork",
		}); err != nil {
			t.Errorf("a fork after the archive: %v", err)
		}
		if err := describe("two", etag); err != nil {
			t.Errorf("after the archive: %v", err)
		}
		if err := describe("three", etag); looptest.Code(err) != codes.CheckpointConflict {
			t.Errorf("after a change: %v", err)
		}
	})
}

// interrupted is a store in which something happens before a commit.
type interrupted struct {
	store.Store
	before func()
}

func (s *interrupted) Commit(ctx context.Context, c *store.Commit) error {
	if s.before != nil {
		s.before()
	}
	return s.Store.Commit(ctx, c)
}

// TestRunAfterArchive: the next run begins where an archived log ends.
func TestRunAfterArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		e := looptest.Start(t, store, nil, looptest.Wordy())
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		first := looptest.Collect(t, reply, err)
		time.Sleep(2 * time.Minute)
		in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "again"))
		reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", in)
		second := looptest.Collect(t, reply, err)
		looptest.Succeeded(t, second)
		// From the store, as another process would.
		other := looptest.Start(t, store, nil, looptest.Wordy())
		reply, err = other.Owner.Post(t.Context(), looptest.Alice, "", in)
		if again := looptest.Collect(t, reply, err); looptest.Show(again) != looptest.Show(second) {
			t.Errorf("the replay of the second run:\n%s\nwant\n%s", looptest.Show(again), looptest.Show(second))
		}
		reply, err = other.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if again := looptest.Collect(t, reply, err); !slices.Equal(looptest.Reduce(again), looptest.Reduce(first)) {
			t.Errorf("the replay of the first run shows %q, want %q", looptest.Reduce(again), looptest.Reduce(first))
		}
		time.Sleep(2 * time.Minute)
		reply, err = other.Owner.Post(t.Context(), looptest.Alice, "", in)
		if again := looptest.Collect(t, reply, err); !slices.Equal(looptest.Reduce(again), looptest.Reduce(second)) {
			t.Errorf("archived, the second run shows %q, want %q", looptest.Reduce(again), looptest.Reduce(second))
		}
	})
}

// TestArchiveUnderAReader: a watcher that reads from the store continues when its place is
// archived meanwhile.
func TestArchiveUnderAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, nil, looptest.Wordy())
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		want := looptest.Reduce(looptest.Collect(t, reply, err))
		other := looptest.Start(t, db, nil, looptest.Wordy())
		reply, err = other.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		var events []agui.Event
		for batch, err := range reply.Whole() {
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range batch {
				events = append(events, looptest.Must(agui.DecodeEvent(f.Data))(t))
			}
			time.Sleep(2 * time.Minute)
		}
		if got := looptest.Reduce(events); !slices.Equal(got, want) {
			t.Errorf("the slow reader shows %q, want %q", got, want)
		}
		if _, err := db.Value(t.Context(), store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}, store.KindLog,
			"r1"); errors.Is(err, store.ErrNotFound) {
			t.Error("the log was not archived under the reader")
		}
	})
}

// FuzzArchive: whatever the deltas were, an archive gives them back, from anywhere.
func FuzzArchive(f *testing.F) {
	f.Add("one|two|three", uint8(1))
	f.Add("ü||🙂|", uint8(2))
	f.Fuzz(func(t *testing.T, text string, skip uint8) {
		text = strings.ToValidUTF8(text, "?")
		parts := strings.Split(text, "|")
		whole := strings.Join(parts, "")
		m := agui.FromDomain(holdfast.Message{ID: "m", Role: holdfast.RoleAssistant, Text: whole})
		kept := looptest.Must(thread.TextsOf([]store.Message{{ID: "m", Data: m.AppendJSON(nil)}}))(t)
		records := []store.Record{
			{
				Cursor: store.Cursor{Number: 7, Tag: "a"},
				Data:   agui.Append(nil, agui.TextMessageStart{MessageID: "m", Role: "assistant"}),
			},
		}
		for i, p := range parts {
			records = append(records, store.Record{
				Cursor: store.Cursor{Number: uint64(8 + i), Tag: "a"},
				Data:   agui.Append(nil, agui.TextMessageContent{MessageID: "m", Delta: p}),
			})
		}
		a := thread.ArchiveRun("r", records, kept)
		seen := int(skip) % len(records)
		rest, held := a.After(records[seen].Cursor, 1000, kept)
		if !held {
			t.Fatal("the archive does not hold its cursor")
		}
		got := strings.Join(parts[:seen], "")
		for i := range rest {
			_, delta, _ := thread.DeltaOf(rest[i].Data)
			got += delta
		}
		if got != whole {
			t.Errorf("after %d parts the rest makes %q, want %q", seen, got, whole)
		}
	})
}

// TestPrunedText: an archived log whose texts were pruned shows no message without its words;
// the watcher starts over, and reads why.
func TestPrunedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil, looptest.Wordy())
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		frames, _ := looptest.FramesOf(t, reply, err)
		time.Sleep(2 * time.Minute)
		at := looptest.Checkpoints(t, e, "t")[1] // after the first answer
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: at.ID}))(t)
		looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
		reasons := map[string]int{}
		for _, f := range frames[:len(frames)-3] { // up to the second answer's last word
			after := looptest.Must(store.ParseCursor(f.ID))(t)
			shown := looptest.Collect(t,
				looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", after, agui.DialectV1))(t), nil)
			reasons[string(shown[0].(agui.RunStarted).Metadata)]++
		}
		if want := `{"holdfast":{"resync":true,"resyncReason":"no_log","runId":"r1"}}`; reasons[want] != len(frames)-3 {
			t.Errorf("the streams begin with %v", reasons)
		}
	})
}

// TestPrunedUnderAReader: a watcher that is so slow that its place is pruned is cut, and when
// it comes back it starts over.
func TestPrunedUnderAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e, other := looptest.Start(t, db, nil, looptest.Wordy()), looptest.Start(t, db, nil, looptest.Wordy())
		first := looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(45 * time.Millisecond)
		slow := looptest.Must(other.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{},
			agui.DialectV1))(t)
		next, stop := iter.Pull2(slow.Whole())
		defer stop()
		frames, err, _ := next()
		if err != nil || len(frames) == 0 {
			t.Fatal(frames, err)
		}
		at := looptest.Must(store.ParseCursor(frames[len(frames)-1].ID))(t)
		looptest.Collect(t, first, nil)
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again"))))
		time.Sleep(2 * time.Minute)
		looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
		if frames, err, _ := next(); looptest.Code(err) != codes.StreamCut || !errors.Is(err, store.ErrCursor) {
			t.Errorf("%d frames, %v", len(frames), err)
		}
		back := looptest.Collect(t, looptest.Must(other.Owner.Events(t.Context(), looptest.Alice, "t", "r1", at,
			agui.DialectV1))(t), nil)
		if started := back[0].(agui.RunStarted); string(started.Metadata) !=
			`{"holdfast":{"resync":true,"resyncReason":"no_log","runId":"r2"}}` {
			t.Errorf("%s", started.Metadata)
		}
	})
}
