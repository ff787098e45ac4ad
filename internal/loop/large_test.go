package loop_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/store"
)

// Long conversations, of which a model is shown the end.

// windowed is an agent that is shown the last hundred messages, and answers in a sentence.
func windowed() holdfast.Agent {
	return holdfast.Agent{
		Name: "a",
		Model: holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				yield(holdfast.Delta{Text: strings.Repeat("some words ", 17), Finish: holdfast.FinishStop}, nil)
			}
		}),
		Middleware: []holdfast.Middleware{
			middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 100}),
		},
	}
}

// conversation is n messages of a person and an assistant, in turns, of which the last is the person's.
func conversation(n int) (list []agui.Message) {
	for i := range n {
		role := holdfast.RoleAssistant
		if i%2 == (n-1)%2 {
			role = holdfast.RoleUser
		}
		list = append(list, agui.FromDomain(holdfast.Message{
			ID: fmt.Sprintf("message_%08d", i), Role: role, Text: strings.Repeat("several words ", 14),
		}))
	}
	return list
}

// talk is a client that takes turns in a conversation, and says where it stands.
type talk struct {
	testing.TB
	db   store.Store
	said int
}

// begin begins a conversation of n messages.
func (c *talk) begin(e *looptest.Engine, n int) {
	c.Helper()
	c.say(e, looptest.RunInput("t", "r0", conversation(n-1)...))
}

// next takes the next turn.
func (c *talk) next(e *looptest.Engine) {
	c.Helper()
	at := looptest.Must(thread.Reader{Store: c.db}.Head(context.Background(), looptest.KeyOf("t")))(c)
	c.say(e, standing("t", fmt.Sprint("r", c.said), at.State.Leaf, "",
		looptest.UserSays(fmt.Sprint("new", c.said), strings.Repeat("several words ", 14))))
}

func (c *talk) say(e *looptest.Engine, in *agui.RunAgentInput) {
	c.Helper()
	c.said++
	reply, err := e.Owner.Post(context.Background(), looptest.Alice, "", in)
	if err != nil {
		c.Fatal(err)
	}
	for _, err := range reply.Whole() {
		if err != nil {
			c.Fatal(err)
		}
	}
	wait.Until(c, "the end of the run", func() bool { return e.Owner.Running() == 0 })
}

// treeReads counts how often a whole message tree is read.
type treeReads struct {
	store.Store
	n int
}

func (s *treeReads) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	s.n++
	return s.Store.Messages(ctx, key)
}

// TestNextTurnOfALongConversation: the process that has run a conversation of 5,000 messages does
// not read them for the next turn, nor to archive its log, and allocates no more than for one of a
// hundred, which it reads.
func TestNextTurnOfALongConversation(t *testing.T) {
	cost := func(n int) (reads int, allocations uint64) {
		db := &treeReads{Store: memstore.New()}
		c := &talk{TB: t, db: db}
		e := looptest.Start(t, db, func(c *looptest.Config) { c.ArchiveAfter = time.Hour }, windowed())
		c.begin(e, n)
		c.next(e)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		db.n = 0
		for range 4 {
			c.next(e)
			if err := e.Keeper.Archive(t.Context(), looptest.KeyOf("t")); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return db.n, (after.Mallocs - before.Mallocs) / 4
	}
	reads, short := cost(100)
	if reads == 0 {
		t.Error("nothing was counted")
	}
	reads, long := cost(5000)
	if reads > 0 || long > short {
		t.Errorf("a turn after 5,000 messages reads the tree %d times, and allocates %d times, after 100 %d times",
			reads, long, short)
	}
}

// TestNextTurnElsewhere: a server that has not run a conversation of 5,000 messages reads them without
// much ado: a few allocations for each.
func TestNextTurnElsewhere(t *testing.T) {
	db := memstore.New()
	one, two := looptest.Start(t, db, nil, windowed()), looptest.Start(t, db, nil, windowed())
	c := &talk{TB: t, db: db}
	c.begin(one, 5000)
	c.next(two)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.next(one)
	c.next(two)
	runtime.ReadMemStats(&after)
	if n := (after.Mallocs - before.Mallocs) / 2; n > 40_000 {
		t.Errorf("a turn takes %d allocations", n)
	}
}

// TestTurnsAtTwoServers: a process that has a long history in memory notices what another one has
// added to it, and that its log was archived.
func TestTurnsAtTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		one, two := looptest.Start(t, db, nil, windowed()), looptest.Start(t, db, nil, windowed())
		c := &talk{TB: t, db: db}
		c.begin(one, 300)
		for _, e := range []*looptest.Engine{one, one, two, one, two, two, one} {
			c.next(e)
			time.Sleep(time.Duration(c.said%2) * 2 * time.Minute) // every second log is archived before the next turn
		}
		texts := looptest.Texts(t, one, "t")
		if n := len(texts); n != 300+2*7+1 { // with the activity of a cut
			t.Errorf("%d messages", n)
		}
		sound(t, db, "t")
	})
}
