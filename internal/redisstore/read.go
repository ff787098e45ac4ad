package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The Reader role. A read takes one round trip where it can, so the question whether
// the thread exists goes along in the same pipeline.

// Head implements [store.Reader].
func (s *Store) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	tag := tag(key)
	var found *redis.SliceCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		found = pipe.HMGet(ctx, s.keys.thread(tag), "v", "h", "s", fieldUser)
	})
	if err != nil {
		return nil, failed("read the head of thread "+key.String(), err)
	}
	fields := found.Val()
	h, err := decodeHead(key, fields)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, err
	case err != nil:
		return ownedBy(key, fields[3]), err
	}
	if state, there := fields[2].(string); there {
		h.State, err = s.decode(key, "", stateName, state)
	}
	return h, err
}

// Messages implements [store.Reader].
func (s *Store) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	tag := tag(key)
	var found *redis.MapStringStringCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) { found = pipe.HGetAll(ctx, s.keys.thread(tag)) })
	if err != nil {
		return nil, failed("read the messages of thread "+key.String(), err)
	}
	fields := found.Val()
	if fields["h"] == "" {
		return nil, notFound(key)
	}
	var messages []store.Message
	var order []int
	for field, value := range fields {
		id, isMessage := strings.CutPrefix(field, "m:")
		if !isMessage {
			continue
		}
		m, n, err := s.decodeMessage(key, id, value)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
		order = append(order, n)
	}
	return inOrder(messages, order), nil
}

// decodeMessage returns the message in a field of the thread's hash, and its place in
// commit order.
func (s *Store) decodeMessage(key store.ThreadKey, id, value string) (m store.Message, place int, err error) {
	number, rest, _ := strings.Cut(value, ":")
	place, err = strconv.Atoi(number)
	parent, framed, ok := cutName(rest)
	if err != nil || !ok {
		return m, 0, fmt.Errorf("message %q of thread %s: %w", id, key, errDamaged)
	}
	data, err := s.decode(key, rest[:len(rest)-len(framed)], id, framed)
	return store.Message{ID: id, Parent: parent, Data: data}, place, err
}

// MessagesOf implements [store.Reader].
func (s *Store) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	fields := []string{"h"}
	for _, id := range ids {
		fields = append(fields, "m:"+id)
	}
	tag := tag(key)
	var found *redis.SliceCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) { found = pipe.HMGet(ctx, s.keys.thread(tag), fields...) })
	if err != nil {
		return nil, failed("read messages of thread "+key.String(), err)
	}
	values := found.Val()
	if values[0] == nil {
		return nil, notFound(key)
	}
	var messages []store.Message
	for i, id := range ids {
		value, there := values[i+1].(string)
		if !there {
			return nil, fmt.Errorf("thread %s, message %q: %w", key, id, store.ErrNotFound)
		}
		m, _, err := s.decodeMessage(key, id, value)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// inOrder returns the list sorted by the numbers of its members, which are distinct.
func inOrder[T any](list []T, numbers []int) []T {
	index := make([]int, len(list))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	var sorted []T
	for _, i := range index {
		sorted = append(sorted, list[i])
	}
	return sorted
}

// pageEntries is how many entries of the log are read at a time. A commit is one entry,
// of one or more records.
const pageEntries = 128

// Records implements [store.Reader]. An entry's id is the number of its last record,
// so the first entry from a number on is the one that has this record. A log that has it
// belongs to a thread that exists, so only a reader that finds nothing asks for that: those
// who follow a run read often.
func (s *Store) Records(ctx context.Context, key store.ThreadKey, after store.Cursor, limit int) ([]store.Record, error) {
	tag := tag(key)
	from := after.Number
	count := int64(min(max(limit, 0)+1, pageEntries))
	var found []store.Record
	held := after == store.Cursor{}
	for {
		var page *redis.XMessageSliceCmd
		err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
			page = pipe.XRangeN(ctx, s.keys.log(tag), strconv.FormatUint(from, 10), "+", count)
		})
		if err != nil {
			return nil, failed("read the log of thread "+key.String(), err)
		}
		entries := page.Val()
		if len(entries) == 0 && len(found) == 0 {
			if exists, err := s.client.HExists(ctx, s.keys.thread(tag), "h").Result(); err != nil {
				return nil, failed("read the log of thread "+key.String(), err)
			} else if !exists {
				return nil, notFound(key)
			}
		}
		for i := range entries {
			records, err := s.decodeEntry(key, &entries[i])
			if err != nil {
				return nil, err
			}
			for _, r := range records {
				held = held || r.Cursor == after
				if r.Number > after.Number && len(found) < limit {
					found = append(found, r)
				}
			}
			from = records[len(records)-1].Number + 1
		}
		if !held {
			return nil, fmt.Errorf("thread %s, cursor %s: %w", key, after, store.ErrCursor)
		}
		if len(found) >= limit || int64(len(entries)) < count {
			return found, nil
		}
	}
}

// Value implements [store.Reader].
func (s *Store) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	tag := tag(key)
	var framed *redis.StringCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) { framed = pipe.HGet(ctx, s.keys.values(tag, kind), id) })
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("thread %s, %s %q: %w", key, kind, id, store.ErrNotFound)
	}
	if err != nil {
		return nil, failed("read a value of thread "+key.String(), err)
	}
	return s.decode(key, "", valueName(kind, id), framed.Val())
}

// Values implements [store.Reader]. It reads all values of the kind; only of
// checkpoints are there many, and the history gives pages of those.
func (s *Store) Values(ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int) ([]store.Value, error) {
	if kind == store.KindCheckpoint {
		return s.checkpoints(ctx, key, before, limit)
	}
	tag := tag(key)
	var head *redis.BoolCmd
	var all *redis.MapStringStringCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		head = pipe.HExists(ctx, s.keys.thread(tag), "h")
		all = pipe.HGetAll(ctx, s.keys.values(tag, kind))
	})
	if err != nil {
		return nil, failed("read values of thread "+key.String(), err)
	}
	if !head.Val() {
		return nil, notFound(key)
	}
	var values []store.Value
	for id, framed := range all.Val() {
		if before != "" && id >= before {
			continue
		}
		data, err := s.decode(key, "", valueName(kind, id), framed)
		if err != nil {
			return nil, err
		}
		values = append(values, store.Value{Kind: kind, ID: id, Data: data})
	}
	slices.SortFunc(values, func(a, b store.Value) int { return cmp.Compare(b.ID, a.ID) })
	if limit > 0 {
		values = values[:min(len(values), limit)]
	}
	return values, nil
}

// checkpoints returns a page of the history, newest first.
func (s *Store) checkpoints(ctx context.Context, key store.ThreadKey, before string, limit int) ([]store.Value, error) {
	tag := tag(key)
	page := &redis.ZRangeBy{Min: "-", Max: "+", Count: int64(limit)}
	if before != "" {
		page.Max = "(" + before
	}
	var head *redis.BoolCmd
	var ids *redis.StringSliceCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		head = pipe.HExists(ctx, s.keys.thread(tag), "h")
		ids = pipe.ZRevRangeByLex(ctx, s.keys.history(tag), page)
	})
	if err != nil {
		return nil, failed("read the history of thread "+key.String(), err)
	}
	switch {
	case !head.Val():
		return nil, notFound(key)
	case len(ids.Val()) == 0:
		return nil, nil
	}
	var framed *redis.SliceCmd
	err = s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		framed = pipe.HMGet(ctx, s.keys.values(tag, store.KindCheckpoint), ids.Val()...)
	})
	if err != nil {
		return nil, failed("read checkpoints of thread "+key.String(), err)
	}
	var values []store.Value
	for i, id := range ids.Val() {
		text, there := framed.Val()[i].(string)
		if !there {
			continue // removed since the history was read
		}
		data, err := s.decode(key, "", valueName(store.KindCheckpoint, id), text)
		if err != nil {
			return nil, err
		}
		values = append(values, store.Value{Kind: store.KindCheckpoint, ID: id, Data: data})
	}
	return values, nil
}

// Inbox implements [store.Reader].
func (s *Store) Inbox(ctx context.Context, key store.ThreadKey) ([]store.InboxItem, error) {
	tag := tag(key)
	pipe := s.client.Pipeline()
	head := pipe.HExists(ctx, s.keys.thread(tag), "h")
	all := pipe.HGetAll(ctx, s.keys.inbox(tag))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("read the inbox of thread "+key.String(), err)
	}
	if !head.Val() {
		return nil, notFound(key)
	}
	var items []store.InboxItem
	for id, value := range all.Val() {
		number, framed, _ := strings.Cut(value, ":")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("inbox item %q of thread %s: %w", id, key, errDamaged)
		}
		data, err := s.decode(key, "", id, framed)
		if err != nil {
			return nil, err
		}
		items = append(items, store.InboxItem{ID: id, Number: n, Data: data})
	}
	slices.SortFunc(items, func(a, b store.InboxItem) int { return cmp.Compare(a.Number, b.Number) })
	return items, nil
}

// Size implements [store.Reader].
func (s *Store) Size(ctx context.Context, key store.ThreadKey) (map[string]int64, error) {
	tag := tag(key)
	fields, err := s.client.HGetAll(ctx, s.keys.thread(tag)).Result()
	switch {
	case err != nil:
		return nil, failed("measure thread "+key.String(), err)
	case fields["h"] == "":
		return nil, notFound(key)
	}
	kinds := slices.Clone(knownKinds)
	size := map[string]int64{}
	for name, value := range fields {
		if strings.HasPrefix(name, "m:") {
			size[store.SizeMessages] += int64(len(value))
		}
		if escaped, ok := strings.CutPrefix(name, fieldKind); ok {
			kind, err := url.QueryUnescape(escaped)
			if err != nil {
				return nil, fmt.Errorf("thread %s has the kind %q: %w", key, escaped, errDamaged)
			}
			kinds = append(kinds, store.Kind(kind))
		}
	}
	for _, k := range kinds {
		values, err := s.client.HVals(ctx, s.keys.values(tag, k)).Result()
		if err != nil {
			return nil, failed("measure thread "+key.String(), err)
		}
		for _, v := range values {
			size[string(k)] += int64(len(v))
		}
	}
	if size[store.SizeRecords], err = s.logSize(ctx, tag); err != nil {
		return nil, failed("measure thread "+key.String(), err)
	}
	for what, n := range size {
		if n == 0 {
			delete(size, what)
		}
	}
	return size, nil
}

// logSize returns how many bytes the log takes.
func (s *Store) logSize(ctx context.Context, tag string) (int64, error) {
	var total int64
	for from := "-"; ; {
		page, err := s.client.XRangeN(ctx, s.keys.log(tag), from, "+", pageEntries).Result()
		if err != nil {
			return 0, err
		}
		for i := range page {
			value, _ := page[i].Values[""].(string)
			total += int64(len(value))
		}
		if len(page) < pageEntries {
			return total, nil
		}
		from = "(" + page[len(page)-1].ID
	}
}
