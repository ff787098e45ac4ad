package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

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
	keys, args := s.commitArgs(tag, c)
	n, err := s.announceAndCommit(ctx, tag, c, keys, args)
	if err != nil {
		return failed("commit to thread "+c.Key.String(), err)
	}
	switch n % 8 {
	case codeOK, codeAlready:
		if n == codeOK && len(c.Records) > 0 {
			s.watchers.wake(watched{tag, holdfast.TopicRecords})
		}
		return nil
	case codeTooNew:
		return tooNew(c.Key)
	}
	return fmt.Errorf("commit to thread %s: %w", c.Key, refusal(c, n))
}

func refusal(c *holdfast.Commit, n int) error {
	switch n % 8 {
	case codeFenced:
		return holdfast.ErrFenced
	case codeConflict:
		return holdfast.ErrConflict
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

// arguments collects what the commit script reads, in its order.
type arguments struct {
	names keys
	tag   string
	keys  []string
	list  []any
}

// commitArgs writes a commit as the script reads it.
func (s *Store) commitArgs(tag string, c *holdfast.Commit) ([]string, []any) {
	a := &arguments{names: s.keys, tag: tag, keys: []string{s.keys.thread(tag), s.keys.log(tag), s.keys.inbox(tag), s.keys.history(tag)}}
	a.list = make([]any, 0, 32)
	a.add(Format, c.ID, c.Expect.ETag, c.Expect.Fence.Nonce, c.Expect.Fence.Epoch, c.Expect.Next)
	a.add(c.User, c.Fence.Nonce, c.Fence.Epoch, c.Expect.Next+uint64(len(c.Records)))
	a.add(c.Process, encodeTime(c.UpdatedAt), s.now().UnixMilli(), c.InboxSeen)
	a.add(len(c.Messages))
	for i := range c.Messages {
		m := &c.Messages[i]
		a.add(m.ID, m.Parent, s.codec.Encode(appendName(nil, m.Parent), m.Data))
	}
	a.add(s.encodeEntry(c))
	if c.State == nil {
		a.add(0)
	} else {
		a.add(1, s.codec.Encode(nil, c.State))
	}
	s.valueArgs(a, c)
	return a.keys, a.list
}

func (a *arguments) add(values ...any) { a.list = append(a.list, values...) }

// kind adds the place of the kind's hash among the keys, and whether the
// history lists its values.
func (a *arguments) kind(k holdfast.Kind) {
	key := a.names.values(a.tag, k)
	at := slices.Index(a.keys, key)
	if at < 0 {
		at = len(a.keys)
		a.keys = append(a.keys, key)
	}
	a.add(at + 1)
	if k == holdfast.KindCheckpoint {
		a.add(1)
	} else {
		a.add(0)
	}
}

// valueArgs writes what is cleared, put, deleted and kept.
func (s *Store) valueArgs(a *arguments, c *holdfast.Commit) {
	clear := slices.Compact(slices.Sorted(slices.Values(c.Clear)))
	if slices.Contains(clear, holdfast.KindCheckpoint) {
		a.add(len(clear) + 1)
		a.add(4) // the history
	} else {
		a.add(len(clear))
	}
	for _, k := range clear {
		a.kind(k)
		a.list = a.list[:len(a.list)-1] // the place is enough
	}
	put := map[holdfast.Kind][]any{}
	for _, v := range c.Put {
		put[v.Kind] = append(put[v.Kind], v.ID, s.codec.Encode(nil, v.Data))
	}
	a.add(len(put))
	for _, k := range slices.Sorted(maps.Keys(put)) {
		a.kind(k)
		a.add(len(put[k]) / 2)
		a.add(put[k]...)
	}
	del := map[holdfast.Kind][]any{}
	for _, v := range c.Delete {
		del[v.Kind] = append(del[v.Kind], v.ID)
	}
	a.add(len(del))
	for _, k := range slices.Sorted(maps.Keys(del)) {
		a.kind(k)
		a.add(len(del[k]))
		a.add(del[k]...)
	}
	a.add(len(c.Keep))
	for _, k := range slices.Sorted(maps.Keys(c.Keep)) {
		a.kind(k)
		a.add(max(c.Keep[k], 0))
	}
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
	return s.codec.Encode(appendName(nil, c.Fence.Tag()), body)
}

// encodeTime writes seconds since 1970 and nanoseconds, which hold any time.
func encodeTime(t time.Time) string {
	return strconv.FormatInt(t.Unix(), 10) + "." + strconv.Itoa(t.Nanosecond())
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
		strconv.Itoa(Format), item.ID, s.codec.Encode(nil, item.Data), tag, s.keys.inboxChannel())
	switch {
	case err != nil:
		return failed("post to thread "+key.String(), err)
	case n == 1:
		return notFound(key)
	case n == codeTooNew:
		return tooNew(key)
	}
	s.watchers.wake(watched{tag, holdfast.TopicInbox})
	return nil
}
