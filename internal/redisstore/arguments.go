package redisstore

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// What the commit scripts are given. A script reads its arguments in the order in
// which this file writes them; commit.lua and append.lua are the other half of it.

// call is a script with its keys and arguments.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

// appends reports whether c only appends to the log and cannot be a retry.
func appends(c *store.Commit) bool {
	return len(c.Records) > 0 && c.State == nil && len(c.Messages) == 0 && len(c.Put) == 0 && len(c.Delete) == 0 &&
		len(c.Clear) == 0 && len(c.Keep) == 0 && c.InboxSeen == 0 && c.Trim == 0 && c.Parent == "" && len(c.Forget) == 0 && c.ID != c.Expect.ETag
}

// isLarge reports whether a commit takes Redis much longer than others.
func isLarge(c *store.Commit) bool {
	size := len(c.State) + len(c.Messages)*messageWork
	for i := range c.Messages {
		size += len(c.Messages[i].Data)
	}
	for i := range c.Records {
		size += len(c.Records[i])
	}
	for i := range c.Put {
		size += len(c.Put[i].Data)
	}
	return size >= largeCommit
}

// headRoom is what an expected position and a head take, besides ids and names.
const headRoom = 192

// appendCall writes a commit as append.lua reads it.
func (s *Store) appendCall(tag string, c *store.Commit) call {
	next := c.Expect.Next + uint64(len(c.Records))
	// Most commits come here, one for each word that a model says, so both share a buffer.
	room := make([]byte, 0, headRoom+len(c.Expect.ETag)+len(c.ID)+len(c.User)+len(c.Process))
	expected := appendPosition(room, c.Expect)
	head := appendHead(expected[len(expected):], c, next)
	return call{s.scripts.append, []string{s.keys.thread(tag), s.keys.log(tag)}, []any{
		expected, head, strconv.FormatUint(next-1, 10) + "-0", s.encodeEntry(c),
		formatText, s.Now().UnixMilli(),
	}}
}

// arguments collects what the commit script reads, in its order.
type arguments struct {
	names keys
	tag   string
	keys  []string
	list  []any
}

// commitCall writes a commit as commit.lua reads it. What the commit does not have
// takes no argument.
func (s *Store) commitCall(tag string, c *store.Commit) call {
	a := &arguments{names: s.keys, tag: tag, keys: []string{s.keys.thread(tag), s.keys.log(tag)}}
	next := c.Expect.Next + uint64(len(c.Records))
	a.list = make([]any, 3, 32)
	for i := range c.Messages {
		m := &c.Messages[i]
		a.add(m.ID, s.codec.Encode(appendName(nil, m.Parent), m.ID, m.Data))
	}
	entry, hasState, inboxAt, historyAt, repeated := uint64(0), 0, 0, 0, 0
	if c.ID == c.Expect.ETag {
		repeated = 1 // it was written before, if the head is as expected
	}
	if len(c.Records) > 0 {
		entry = next - 1
		a.add(s.encodeEntry(c))
	}
	for _, id := range c.Forget {
		a.add(id)
	}
	if c.State != nil {
		hasState = 1
		a.add(s.codec.Encode(nil, stateName, c.State))
	}
	if c.InboxSeen > 0 {
		inboxAt = a.place(s.keys.inbox(tag))
	}
	if touchesHistory(c) {
		historyAt = a.place(s.keys.history(tag))
	}
	clear, put, del := s.valueArgs(a, c, historyAt)
	a.list[0] = fmt.Sprint(Format, s.Now().UnixMilli(), repeated, c.InboxSeen, inboxAt, historyAt, entry, hasState,
		len(c.Messages), clear, put, del, len(c.Keep), c.Trim, a.fields(c), len(c.Forget))
	a.list[1] = appendPosition(nil, c.Expect)
	a.list[2] = appendHead(nil, c, next)
	return call{s.scripts.commit, a.keys, a.list}
}

// add adds arguments.
func (a *arguments) add(values ...any) { a.list = append(a.list, values...) }

// fields adds further fields of the thread's hash and returns how many: the user, the
// parent, and the kinds that Delete would not know about.
func (a *arguments) fields(c *store.Commit) int {
	a.add(fieldUser, c.User)
	n := 1
	if c.Parent != "" {
		a.add(fieldParent, c.Parent)
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

// kind adds one argument: the place of the kind's hash, whether the history lists its
// values, and a number.
func (a *arguments) kind(k store.Kind, n int) {
	listed := 0
	if k == store.KindCheckpoint {
		listed = 1
	}
	a.add(fmt.Sprint(a.place(a.names.values(a.tag, k)), listed, n))
}

// touchesHistory reports whether c may change the list of checkpoints.
func touchesHistory(c *store.Commit) bool {
	const k = store.KindCheckpoint
	_, keeps := c.Keep[k]
	return keeps || slices.Contains(c.Clear, k) ||
		slices.ContainsFunc(c.Put, func(v store.Value) bool { return v.Kind == k }) ||
		slices.ContainsFunc(c.Delete, func(v store.ValueID) bool { return v.Kind == k })
}

// valueArgs adds what is cleared, put, deleted and kept, by kind. It returns how many
// keys are cleared and how many kinds are put and deleted.
func (s *Store) valueArgs(a *arguments, c *store.Commit, historyAt int) (cleared, put, deleted int) {
	var places []int
	for _, k := range slices.Compact(slices.Sorted(slices.Values(c.Clear))) {
		places = append(places, a.place(s.keys.values(a.tag, k)))
		if k == store.KindCheckpoint {
			places = append(places, historyAt)
		}
	}
	if len(places) > 0 {
		a.add(fmt.Sprint(places))
	}
	values := map[store.Kind][]any{}
	for _, v := range c.Put {
		values[v.Kind] = append(values[v.Kind], v.ID, s.codec.Encode(nil, valueName(v.Kind, v.ID), v.Data))
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		a.kind(k, len(values[k])/2)
		a.add(values[k]...)
	}
	ids := map[store.Kind][]any{}
	for _, v := range c.Delete {
		ids[v.Kind] = append(ids[v.Kind], v.ID)
	}
	for _, k := range slices.Sorted(maps.Keys(ids)) {
		a.kind(k, len(ids[k]))
		a.add(ids[k]...)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Keep)) {
		a.kind(k, max(c.Keep[k], 0))
	}
	return len(places), len(values), len(ids)
}
