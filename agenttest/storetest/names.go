package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Names are arbitrary bytes, in all roles: no store may confuse two of them.

// nameTests test what every role does with odd names.
func nameTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"threads with odd names are apart": testOddThreads,
		"tenants are apart":                testTenants,
		"odd ids of everything":            testOddIDs,
	}
}

// oddNames are easily confused by a store that joins, splits, escapes or counts them.
func oddNames() []string {
	return []string{
		"a",
		"a/b",
		"a/",
		"/a",
		"a\x00",
		"a\x00b",
		"\x00",
		"\x00\x00",
		"\x01",
		"\xff",
		"\xff\xff",
		"a\xff",
		"a:b",
		"a{b}c",
		"{a}",
		"}{",
		"a b",
		" ",
		"ä",
		"a\u0308",
		"日本語",
		"*",
		"?[a]",
		"..",
		"%00",
		"a\nb",
		"\xc3\x28",
		strings.Repeat("x", 256),
		strings.Repeat("x", 127),
		strings.Repeat("x", 128),
		strings.Repeat("é", store.MaxName/2),
	}
}

func testOddThreads(t *testing.T, s store.Store) {
	var threads []*thread
	for _, name := range oddNames() {
		threads = append(threads, create(t, s, key(name), func(c *store.Commit) { fillWith(c, name) }))
	}
	for _, th := range threads {
		th.post("item of "+th.key.Thread[:1], th.key.Thread)
	}
	for _, th := range threads {
		th.holdsOnly(th.key.Thread)
	}
	// Emptying one thread does not empty another.
	threads[0].commit(func(c *store.Commit) { c.Clear, c.InboxSeen = []store.Kind{"k"}, 100 })
	for _, th := range threads[1:] {
		th.holdsOnly(th.key.Thread)
	}
}

// holdsOnly checks that the thread has what fillWith put there, and one posted item.
func (th *thread) holdsOnly(mark string) {
	t, s, ctx := th.t, th.s, th.t.Context()
	t.Helper()
	th.check()
	what := fmt.Sprintf(" of %.40q", th.key)
	records := must(s.Records(ctx, th.key, store.Cursor{}, 10))(t)
	messages := must(s.Messages(ctx, th.key))(t)
	values := must(s.Values(ctx, th.key, "k", "", 0))(t)
	inbox := must(s.Inbox(ctx, th.key))(t)
	if len(records) != 1 || len(messages) != 1 || len(values) != 1 || len(inbox) != 1 {
		t.Errorf("%d records, %d messages, %d values, %d items%s, want one of each", len(records), len(messages),
			len(values), len(inbox), what)
		return
	}
	for _, data := range [][]byte{records[0].Data, messages[0].Data, values[0].Data, inbox[0].Data} {
		if string(data) != mark {
			t.Errorf("something%s is %.40q, want %.40q", what, data, mark)
		}
	}
}

func testTenants(t *testing.T, s store.Store) {
	var threads []*thread
	names := []string{"", "a", "a/b", "b", "a\x00b", "b/a", "\x00"}
	for _, tenant := range names {
		for _, name := range names[1:] {
			k := store.ThreadKey{Tenant: tenant, Thread: name}
			th := create(t, s, k, func(c *store.Commit) { fillWith(c, fmt.Sprintf("%q", k)) })
			th.post("item", fmt.Sprintf("%q", k))
			threads = append(threads, th)
		}
	}
	for _, th := range threads {
		th.holdsOnly(fmt.Sprintf("%q", th.key))
	}
	for _, tenant := range names {
		owner := holdfast.Principal{Tenant: tenant, User: "alice"}
		for _, h := range must(s.Threads(t.Context(), owner, time.Time{}, 100))(t) {
			if h.Key.Tenant != tenant {
				t.Errorf("tenant %q sees thread %q", tenant, h.Key)
			}
		}
	}
}

func testOddIDs(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	for _, name := range oddNames() {
		th.commit(func(c *store.Commit) {
			c.ID, c.User, c.Process = name, name, name
			c.Fence = store.Fence{Epoch: 1 << 63, Nonce: name}
			c.Records = [][]byte{[]byte(name)}
			c.Messages = []store.Message{{ID: name, Data: []byte(name)}}
			c.Put = []store.Value{
				{Kind: "k", ID: name, Data: []byte(name)},
				{Kind: store.Kind(name), ID: "k", Data: []byte(name)},
			}
		})
		th.check()
		th.post(name, name)
		th.post(name, "again")
	}
	messages, inbox := must(s.Messages(t.Context(), th.key))(t), must(s.Inbox(t.Context(), th.key))(t)
	if len(messages) != len(oddNames()) || len(inbox) != len(oddNames()) {
		t.Fatalf("%d messages and %d items, want %d", len(messages), len(inbox), len(oddNames()))
	}
	for i, name := range oddNames() {
		expect(t, "message id", messages[i].ID, name)
		expect(t, "item id", inbox[i].ID, name)
		expect(t, "value", must(s.Value(t.Context(), th.key, "k", name))(t), []byte(name))
		expect(t, "value of kind", must(s.Value(t.Context(), th.key, store.Kind(name), "k"))(t), []byte(name))
	}
	all := must(s.Values(t.Context(), th.key, "k", "", 0))(t)
	for i := range all[1:] {
		if all[i].ID <= all[i+1].ID {
			t.Errorf("value %.40q comes before %.40q", all[i].ID, all[i+1].ID)
		}
	}
}
