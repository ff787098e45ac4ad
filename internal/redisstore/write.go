package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/redis/go-redis/v9"
)

// What the scripts return.
const (
	codeOK = iota
	codeAlready
	codeFenced
	codeConflict
	codeDouble
	codeParent
	codeTooNew
	codeUnclear
)

// Commit implements [holdfast.Committer]: one script, and before the first
// commit of a run or of a minute, the hints that announce it.
func (s *Store) Commit(ctx context.Context, c *holdfast.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	tag := tag(c.Key)
	n, err := codeUnclear, error(nil)
	if appends(c) {
		n, err = s.announceAndCommit(ctx, tag, c, s.appendCall(tag, c))
	}
	if n == codeUnclear && err == nil {
		n, err = s.announceAndCommit(ctx, tag, c, s.commitCall(tag, c))
	}
	if err != nil {
		return failed("commit to thread "+c.Key.String(), err)
	}
	switch n % 8 {
	case codeOK, codeAlready:
		if n == codeOK && len(c.Records) > 0 {
			s.Committed(c.Key)
		}
		return nil
	case codeTooNew:
		return tooNew(c.Key)
	}
	if n%8 == codeFenced || n%8 == codeConflict {
		return s.conflict(ctx, c.Key, c.Expect, n)
	}
	return fmt.Errorf("commit to thread %s: %w", c.Key, refusal(c, n))
}

// conflict says what there is instead of what was expected. It is read after the
// refusal, which stands whatever it says.
func (s *Store) conflict(ctx context.Context, key holdfast.ThreadKey, expected holdfast.Position, code int) error {
	refused := holdfast.ErrConflict
	if code%8 == codeFenced {
		refused = holdfast.ErrFenced
	}
	actual := holdfast.Position{Next: 1}
	if head, err := s.Head(ctx, key); err == nil {
		actual = head.Position()
	}
	conflict := &holdfast.ConflictError{Key: key, Expected: expected, Actual: actual}
	if !errors.Is(conflict, refused) {
		return fmt.Errorf("commit to thread %s: %w", key, refused)
	}
	return conflict
}

func refusal(c *holdfast.Commit, n int) error {
	switch n % 8 {
	case codeDouble:
		return fmt.Errorf("message %q is there already: %w", c.Messages[n/8-1].ID, holdfast.ErrInvalid)
	default:
		m := c.Messages[n/8-1]
		return fmt.Errorf("message %q has the unknown parent %q: %w", m.ID, m.Parent, holdfast.ErrInvalid)
	}
}

// runScript runs a script and returns its number.
func (s *Store) runScript(ctx context.Context, script *redis.Script, keys []string, args ...any) (int, error) {
	return script.Run(ctx, s.client, keys, args...).Int()
}

// call is a script with what it is given.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

func (s *Store) run(ctx context.Context, c call) (int, error) {
	return s.runScript(ctx, c.script, c.keys, c.args...)
}

// appends reports whether c does nothing but append to the log of a thread, and
// is new.
func appends(c *holdfast.Commit) bool {
	return len(c.Records) > 0 && c.State == nil && len(c.Messages) == 0 && len(c.Put) == 0 && len(c.Delete) == 0 &&
		len(c.Clear) == 0 && len(c.Keep) == 0 && c.InboxSeen == 0 && c.Trim == 0 && c.Parent == "" && len(c.Forget) == 0 && c.ID != c.Expect.ETag
}

// appendCall writes a commit as append.lua reads it.
func (s *Store) appendCall(tag string, c *holdfast.Commit) call {
	next := c.Expect.Next + uint64(len(c.Records))
	return call{s.scripts.append, []string{s.keys.thread(tag), s.keys.log(tag)}, []any{
		appendPosition(nil, c.Expect), appendHead(nil, c, next), strconv.FormatUint(next-1, 10) + "-0", s.encodeEntry(c),
		formatText, s.now().UnixMilli(),
	}}
}

// arguments collects what the commit script reads, in its order.
type arguments struct {
	names keys
	tag   string
	keys  []string
	list  []any
}

// commitCall writes a commit as commit.lua reads it. What is not there costs no
// argument.
func (s *Store) commitCall(tag string, c *holdfast.Commit) call {
	a := &arguments{names: s.keys, tag: tag, keys: []string{s.keys.thread(tag), s.keys.log(tag)}}
	next := c.Expect.Next + uint64(len(c.Records))
	a.list = make([]any, 3, 32)
	for i := range c.Messages {
		m := &c.Messages[i]
		a.add(m.ID, m.Parent, s.codec.Encode(appendName(nil, m.Parent), m.Data))
	}
	entry, hasState, inboxAt, historyAt, repeated := uint64(0), 0, 0, 0, 0
	if c.ID == c.Expect.ETag {
		repeated = 1 // written before, if the head is as expected
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
		a.add(s.codec.Encode(nil, c.State))
	}
	if c.InboxSeen > 0 {
		inboxAt = a.place(s.keys.inbox(tag))
	}
	if touchesHistory(c) {
		historyAt = a.place(s.keys.history(tag))
	}
	clear, put, del := s.valueArgs(a, c, historyAt)
	a.list[0] = fmt.Sprint(Format, s.now().UnixMilli(), repeated, c.InboxSeen, inboxAt, historyAt, entry, hasState,
		len(c.Messages), clear, put, del, len(c.Keep), c.Trim, a.fields(c), len(c.Forget))
	a.list[1] = appendPosition(nil, c.Expect)
	a.list[2] = appendHead(nil, c, next)
	return call{s.scripts.commit, a.keys, a.list}
}

func (a *arguments) add(values ...any) { a.list = append(a.list, values...) }

// fields adds further fields of the head, and returns how many: the parent, and
// the kinds that Delete would not know.
func (a *arguments) fields(c *holdfast.Commit) int {
	n := 0
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

// place is where the key stands among the keys, from 1; it is added if it is
// not there.
func (a *arguments) place(key string) int {
	if at := slices.Index(a.keys, key); at >= 0 {
		return at + 1
	}
	a.keys = append(a.keys, key)
	return len(a.keys)
}

// kind adds the place of a kind's hash, whether the history lists its values,
// and a number.
func (a *arguments) kind(k holdfast.Kind, n int) {
	listed := 0
	if k == holdfast.KindCheckpoint {
		listed = 1
	}
	a.add(fmt.Sprint(a.place(a.names.values(a.tag, k)), listed, n))
}

// touchesHistory reports whether c changes the list of checkpoints.
func touchesHistory(c *holdfast.Commit) bool {
	const k = holdfast.KindCheckpoint
	_, keeps := c.Keep[k]
	return keeps || slices.Contains(c.Clear, k) ||
		slices.ContainsFunc(c.Put, func(v holdfast.Value) bool { return v.Kind == k }) ||
		slices.ContainsFunc(c.Delete, func(v holdfast.ValueID) bool { return v.Kind == k })
}

// valueArgs writes what is cleared, put, deleted and kept, by kind, and returns
// how many keys are cleared and how many kinds are put and deleted.
func (s *Store) valueArgs(a *arguments, c *holdfast.Commit, historyAt int) (cleared, put, deleted int) {
	var places []int
	for _, k := range slices.Compact(slices.Sorted(slices.Values(c.Clear))) {
		places = append(places, a.place(s.keys.values(a.tag, k)))
		if k == holdfast.KindCheckpoint {
			places = append(places, historyAt)
		}
	}
	if len(places) > 0 {
		a.add(fmt.Sprint(places))
	}
	values := map[holdfast.Kind][]any{}
	for _, v := range c.Put {
		values[v.Kind] = append(values[v.Kind], v.ID, s.codec.Encode(nil, v.Data))
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		a.kind(k, len(values[k])/2)
		a.add(values[k]...)
	}
	ids := map[holdfast.Kind][]any{}
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

// appendPosition writes what a commit expects: it is how the head begins, so
// one comparison of bytes compares all of it.
func appendPosition(b []byte, p holdfast.Position) []byte {
	b = appendFence(appendText(b, p.ETag), p.Fence)
	b = strconv.AppendUint(b, p.Next, 10)
	return append(b, ';')
}

func appendFence(b []byte, f holdfast.Fence) []byte {
	b = appendText(b, f.Nonce)
	return append(strconv.AppendUint(b, f.Epoch, 10), ',')
}

// appendHead writes the head after a commit: its position, user, process and
// time. The time is in seconds since 1970 and nanoseconds, which hold any.
func appendHead(b []byte, c *holdfast.Commit, next uint64) []byte {
	b = appendPosition(b, holdfast.Position{ETag: c.ID, Fence: c.Fence, Next: next})
	b = appendText(b, c.User)
	b = appendText(b, c.Process)
	b = strconv.AppendInt(b, c.UpdatedAt.Unix(), 10)
	return strconv.AppendInt(append(b, '.'), int64(c.UpdatedAt.Nanosecond()), 10)
}

// appendText writes a text after its length.
func appendText(b []byte, text string) []byte {
	b = strconv.AppendInt(b, int64(len(text)), 10)
	return append(append(b, ':'), text...)
}

// encodeEntry makes one log entry of a commit's records: the tag, then the
// frame of all records, each after its length. Together they compress better,
// and they are read together.
func (s *Store) encodeEntry(c *holdfast.Commit) []byte {
	if len(c.Records) == 0 {
		return nil
	}
	size := 0
	for _, r := range c.Records {
		size += binary.MaxVarintLen32 + len(r)
	}
	body := make([]byte, 0, size)
	for _, r := range c.Records {
		body = append(binary.AppendUvarint(body, uint64(len(r))), r...)
	}
	tag := c.Fence.Tag()
	return s.codec.Encode(appendName(make([]byte, 0, len(tag)+len(body)+16), tag), body)
}

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// Post implements [holdfast.Committer].
func (s *Store) Post(ctx context.Context, key holdfast.ThreadKey, item holdfast.InboxItem) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := item.Validate(); err != nil {
		return err
	}
	tag := tag(key)
	n, err := s.runScript(ctx, s.scripts.post, []string{s.keys.thread(tag), s.keys.inbox(tag)},
		formatText, item.ID, s.codec.Encode(nil, item.Data), tag, s.keys.inboxChannel())
	switch {
	case err != nil:
		return failed("post to thread "+key.String(), err)
	case n == 1:
		return notFound(key)
	case n == codeTooNew:
		return tooNew(key)
	}
	s.Posted(key)
	return nil
}
