package redisstore

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// The arguments of the commit scripts. A script reads its arguments in the order in which this
// file writes them; commit.lua and append.lua are the other half of it.

// calls writes commits as the scripts read them.
type calls struct {
	keys    keys
	values  *values
	scripts *scripts
	clock   *clock.Remote
	cluster bool
}

// appends reports whether c only appends to the log and cannot be a retry.
func appends(c *store.Commit) bool {
	changes := len(c.Messages) + len(c.Put) + len(c.Delete) + len(c.Clear) + len(c.Keep) + len(c.Forget)
	return len(c.Records) > 0 && changes == 0 && c.State == nil && c.InboxSeen == 0 && c.Trim == 0 && c.Parent == "" &&
		c.ID != c.Expect.ETag
}

// headRoom is what an expected position and a head take, besides ids and names.
const headRoom = 192

// append writes a commit as append.lua reads it.
func (s *calls) append(tag string, c *store.Commit) call {
	next := c.Expect.Next + uint64(len(c.Records))
	// Most commits come here, one for each word that a model says, so both share a buffer.
	room := make([]byte, 0, headRoom+len(c.Expect.ETag)+len(c.ID)+len(c.User)+len(c.Process))
	expected := appendPosition(room, c.Expect)
	head := appendHead(expected[len(expected):], c, next)
	return call{
		script: s.scripts.append,
		keys:   s.keys.threadAndLog(tag),
		args: []any{
			expected, head, next - 1, s.values.encodeEntry(c), layoutText, s.clock.Stamp().UnixMilli(),
		},
		appends: true,
	}
}

// arguments collects what the commit script reads, in its order.
type arguments struct {
	names  keys
	tag    string
	keys   []string
	list   []any
	newest newest
}

// commit writes a commit as commit.lua reads it. Absent parts of a commit take no argument.
func (s *calls) commit(tag string, c *store.Commit, listings []store.Listing) call {
	a := &arguments{names: s.keys, tag: tag, keys: []string{s.keys.thread(tag), s.keys.log(tag)}, newest: newestOf(c)}
	next := c.Expect.Next + uint64(len(c.Records))
	a.list = make([]any, 3, 32)
	encode := s.values.encode
	if len(c.Messages) > manyMessages {
		encode = s.values.writer().Encode
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		a.add(placed(c, i, encode(appendName(nil, m.Parent), m.ID, m.Data))...)
	}
	recent := a.recent(s.values, c)
	entry, hasState, inboxAt, repeated := uint64(0), 0, 0, 0
	if c.ID == c.Expect.ETag {
		repeated = 1 // it was written before, if the head is as expected
	}
	if len(c.Records) > 0 {
		entry = next - 1
		a.add(s.values.encodeEntry(c))
	}
	for _, id := range c.Forget {
		a.add(id)
	}
	if c.State != nil {
		hasState = 1
		a.add(s.values.encode(nil, stateName, c.State))
	}
	if c.InboxSeen > 0 {
		inboxAt = a.place(s.keys.inbox(tag))
	}
	v := s.valueArgs(a, c)
	if v.listed == 1 {
		a.place(s.keys.history(tag))
	}
	a.list[0] = numbers(layout, int(s.clock.Stamp().UnixMilli()), repeated, int(c.InboxSeen), inboxAt, v.listed,
		int(entry), hasState, len(c.Messages), v.voids, v.cleared, v.intents, recent, v.put, v.deleted, v.kept,
		int(c.Trim), a.fields(c, s.values, listings), len(c.Forget), inCluster(s.cluster, c))
	a.list[1] = appendPosition(nil, c.Expect)
	a.list[2] = appendHead(nil, c, next)
	return call{script: s.scripts.commit, keys: a.keys, args: a.list}
}

// numbers writes an argument that is numbers.
func numbers(list ...int) []byte {
	b := make([]byte, 0, 4*len(list)+16)
	for i, n := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// add adds arguments.
func (a *arguments) add(values ...any) { a.list = append(a.list, values...) }

// fields adds further fields of the thread's hash and returns how many: the user, the
// parent, the lists that it is in, if they change, and the kinds that Delete would not know about.
func (a *arguments) fields(c *store.Commit, s *values, listings []store.Listing) int {
	a.add(fieldUser, c.User)
	n := 1
	if c.Parent != "" {
		a.add(fieldParent, c.Parent)
		n++
	}
	if listings != nil {
		a.add(fieldListings, s.encode(nil, listingsName, encodeListings(listings)))
		n++
	}
	for _, v := range c.Put {
		if !slices.Contains(knownKinds, v.Kind) {
			a.add(fieldKind+url.QueryEscape(string(v.Kind)), "")
			n++
		}
	}
	return n
}

// place returns the key's position among the keys, counted from 1. A new key is added.
func (a *arguments) place(key string) int {
	if at := slices.Index(a.keys, key); at >= 0 {
		return at + 1
	}
	a.keys = append(a.keys, key)
	return len(a.keys)
}

// recent adds the checkpoint, if it goes into the thread's hash, and returns how many that
// are.
func (a *arguments) recent(s *values, c *store.Commit) int {
	for _, p := range c.Put {
		if a.newest.checkpoint && p.Kind == store.KindCheckpoint {
			a.add(append(appendName(nil, p.ID), s.encode(nil, valueName(p.Kind, p.ID), p.Data)...), c.Keep[p.Kind])
			return 1
		}
	}
	return 0
}

// intents adds the intents that go there, and returns how many they are.
func (a *arguments) intents(s *values, c *store.Commit) (n int) {
	for _, p := range c.Put {
		if a.newest.intents && p.Kind == store.KindIntent {
			a.add(p.ID, s.encode(nil, valueName(p.Kind, p.ID), p.Data))
			n++
		}
	}
	return n
}

// kind adds one argument: the place of the kind's hash, whether the history lists its
// values, and a number. It returns 1 if the history lists them.
func (a *arguments) kind(k store.Kind, n int) (listed int) {
	if k == store.KindCheckpoint {
		listed = 1
	}
	a.add(numbers(a.place(a.names.values(a.tag, k)), listed, n))
	return listed
}

// valueNumbers says what valueArgs has added.
type valueNumbers struct {
	voids                       int // 1 if the intents are cleared, and 2 for the pending writes
	cleared, put, deleted, kept int // keys, and kinds
	intents                     int
	listed                      int // 1 if the list of checkpoints changes otherwise than by a newest one
}

// inCluster says whether a slot may move during the commit: 0 not, 1 in a cluster, 2 in a
// cluster if it would matter whatever the thread has.
func inCluster(cluster bool, c *store.Commit) int {
	switch {
	case !cluster:
		return 0
	case reuses(c):
		return 2
	}
	return 1
}

// reuses reports whether the commit may empty a kind and then touch it again.
func reuses(c *store.Commit) bool {
	empties := map[store.Kind]bool{}
	for _, k := range c.Clear {
		empties[k] = true
	}
	for _, v := range c.Put {
		if empties[v.Kind] {
			return true
		}
	}
	deleted := map[store.Kind]int{}
	for _, v := range c.Delete {
		if deleted[v.Kind]++; empties[v.Kind] || deleted[v.Kind] > 1000 { // more than one call
			return true
		}
	}
	for k := range c.Keep {
		if empties[k] || deleted[k] > 0 {
			return true
		}
	}
	return false
}

// valueArgs adds what is cleared, put, deleted and kept, by kind.
func (s *calls) valueArgs(a *arguments, c *store.Commit) (v valueNumbers) {
	var places []int
	for _, k := range slices.Compact(slices.Sorted(slices.Values(c.Clear))) {
		switch {
		case k == store.KindIntent:
			v.voids |= 1
		case k == store.KindPending:
			v.voids |= 2
		default:
			places = append(places, a.place(s.keys.values(a.tag, k)))
		}
		if k == store.KindCheckpoint {
			v.listed = 1
			places = append(places, a.place(s.keys.history(a.tag)))
		}
	}
	if len(places) > 0 {
		a.add(numbers(places...))
	}
	v.intents = a.intents(s.values, c)
	values := map[store.Kind][]any{}
	for _, p := range c.Put {
		if !a.newest.has(p.Kind) {
			values[p.Kind] = append(values[p.Kind], p.ID, s.values.encode(nil, valueName(p.Kind, p.ID), p.Data))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		v.listed |= a.kind(k, len(values[k])/2)
		a.add(values[k]...)
	}
	ids := map[store.Kind][]any{}
	for _, d := range c.Delete {
		ids[d.Kind] = append(ids[d.Kind], d.ID)
	}
	for _, k := range slices.Sorted(maps.Keys(ids)) {
		v.listed |= a.kind(k, len(ids[k]))
		a.add(ids[k]...)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Keep)) {
		if !a.newest.checkpoint || k != store.KindCheckpoint {
			v.listed |= a.kind(k, max(c.Keep[k], 0))
			v.kept++
		}
	}
	v.cleared, v.put, v.deleted = len(places), len(values), len(ids)
	return v
}
