package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
		found = pipe.HMGet(ctx, s.keys.thread(tag), fieldLayout, "h", "s", fieldUser)
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
		h.State, err = s.values.decode(key, "", stateName, state)
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
	messages, order := make([]store.Message, 0, len(fields)), make([]int, 0, len(fields))
	var room []byte
	for field, value := range fields {
		id, isMessage := strings.CutPrefix(field, "m:")
		if !isMessage {
			continue
		}
		m, n, err := s.values.decodeMessage(key, id, value, &room)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
		order = append(order, n)
	}
	return inOrder(messages, order), nil
}

// MessagesOf implements [store.Reader].
func (s *Store) MessagesOf(ctx context.Context, key store.ThreadKey, ids []string) ([]store.Message, error) {
	fields := []string{"h"}
	for _, id := range ids {
		fields = append(fields, "m:"+id)
	}
	tag := tag(key)
	var found *redis.SliceCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		found = pipe.HMGet(ctx, s.keys.thread(tag), fields...)
	})
	if err != nil {
		return nil, failed("read messages of thread "+key.String(), err)
	}
	values := found.Val()
	if values[0] == nil {
		return nil, notFound(key)
	}
	var messages []store.Message
	var room []byte
	for i, id := range ids {
		value, there := values[i+1].(string)
		if !there {
			return nil, fmt.Errorf("thread %s, message %q: %w", key, id, store.ErrNotFound)
		}
		m, _, err := s.values.decodeMessage(key, id, value, &room)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// inOrder returns the list sorted by the numbers of its members, which are distinct.
func inOrder(list []store.Message, numbers []int) []store.Message {
	if len(list) == 0 {
		return nil
	}
	sorted := make([]store.Message, 0, len(list))
	// Where few numbers are missing, each message has a place of its own.
	if most := slices.Max(numbers); slices.Min(numbers) >= 0 && most < 4*len(list) {
		at := make([]int, most+1)
		for i, n := range numbers {
			at[n] = i + 1
		}
		for _, i := range at {
			if i > 0 {
				sorted = append(sorted, list[i-1])
			}
		}
		if len(sorted) == len(list) {
			return sorted
		}
		sorted = sorted[:0] // some number is there twice, which is damage
	}
	index := make([]int, len(list))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	for _, i := range index {
		sorted = append(sorted, list[i])
	}
	return sorted
}

// pageEntries is how many entries of the log are read at a time. A commit is one entry,
// of one or more records.
const pageEntries = 128

// Records implements [store.Reader]. An entry's id is the number of its last record, so the
// first entry from a number on is the one that has this record. A reader that follows a run
// reads after each commit and lacks only the newest entry, which is in the thread's hash.
func (s *Store) Records(
	ctx context.Context, key store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	tag := tag(key)
	p := recordPage{after: after, limit: max(limit, 0), from: after.Number, held: after == store.Cursor{}}
	newest, trimmed, err := s.logFields(ctx, key, tag)
	if err != nil {
		return nil, err
	}
	p.trimmed = trimmed
	if records, ok := newest.after(after, p.limit); ok && (p.held || after.Number > trimmed) {
		return records, nil
	}
	count := int64(min(p.limit+1, pageEntries))
	for {
		var page *redis.XMessageSliceCmd
		err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
			page = pipe.XRangeN(ctx, s.keys.log(tag), strconv.FormatUint(p.from, 10), "+", count)
		})
		if err != nil {
			return nil, failed("read the log of thread "+key.String(), err)
		}
		entries := page.Val()
		for i := range entries {
			records, err := s.values.decodeEntry(key, &entries[i])
			if err != nil {
				return nil, err
			}
			p.take(records)
		}
		more := int64(len(entries)) == count
		if !more {
			p.take(newest.records)
		}
		switch {
		case !p.held:
			return nil, fmt.Errorf("thread %s, cursor %s: %w", key, after, store.ErrCursor)
		case !more || len(p.found) >= p.limit:
			return p.found, nil
		}
	}
}

// logFields returns what the thread's hash has of the log: the newest entry, and the number
// up to which records were removed.
func (s *Store) logFields(
	ctx context.Context, key store.ThreadKey, tag string,
) (n newestEntry, trimmed uint64, err error) {
	var found *redis.SliceCmd
	err = s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		found = pipe.HMGet(ctx, s.keys.thread(tag), "h", "e", "t")
	})
	if err != nil {
		return n, 0, failed("read the log of thread "+key.String(), err)
	}
	fields := found.Val()
	if fields[0] == nil {
		return n, 0, notFound(key)
	}
	if text, there := fields[2].(string); there {
		if trimmed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return n, 0, errDamaged
		}
	}
	entry, _ := fields[1].(string)
	n, err = s.values.decodeNewest(key, entry)
	return n, trimmed, err
}

// recordPage collects the records after a cursor.
type recordPage struct {
	after   store.Cursor
	limit   int
	trimmed uint64 // the records up to this number are gone
	from    uint64 // the number from which records were not taken yet
	held    bool   // the log has the cursor
	found   []store.Record
}

// take takes in the next records of the log. Those that were taken already are left out.
func (p *recordPage) take(records []store.Record) {
	for _, r := range records {
		if r.Number < p.from || r.Number <= p.trimmed {
			continue
		}
		p.held = p.held || r.Cursor == p.after
		if r.Number > p.after.Number && len(p.found) < p.limit {
			p.found = append(p.found, r)
		}
		p.from = r.Number + 1
	}
}

// Value implements [store.Reader].
func (s *Store) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	tag := tag(key)
	var newest, framed *redis.SliceCmd
	var older *redis.IntCmd // how many checkpoints are listed before this one
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		if fields := newestFields(kind); fields != nil {
			newest = pipe.HMGet(ctx, s.keys.thread(tag), fields...)
		}
		if kind == store.KindCheckpoint {
			older = pipe.ZLexCount(ctx, s.keys.history(tag), "-", "("+id)
		}
		framed = pipe.HMGet(ctx, s.keys.values(tag, kind), id)
	})
	if err != nil {
		return nil, failed("read a value of thread "+key.String(), err)
	}
	text, there := framed.Val()[0].(string)
	if newest != nil {
		found, hidden, err := parseNewest(kind, newest.Val())
		if err != nil {
			return nil, fmt.Errorf("thread %s, %s: %w", key, kind, err)
		}
		if is, ok := found[id]; ok {
			text, there = is, true
		} else if older != nil {
			there = there && older.Val() >= int64(hidden)
		}
	}
	if !there {
		return nil, fmt.Errorf("thread %s, %s %q: %w", key, kind, id, store.ErrNotFound)
	}
	return s.values.decode(key, "", valueName(kind, id), text)
}

// ValuesOf implements [store.Reader].
func (s *Store) ValuesOf(
	ctx context.Context, key store.ThreadKey, kind store.Kind, ids []string,
) ([]store.Value, error) {
	if newestFields(kind) != nil {
		return valuesAmong(ctx, s, key, kind, ids)
	}
	tag := tag(key)
	var head *redis.BoolCmd
	var framed *redis.SliceCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		head = pipe.HExists(ctx, s.keys.thread(tag), "h")
		if len(ids) > 0 {
			framed = pipe.HMGet(ctx, s.keys.values(tag, kind), ids...)
		}
	})
	switch {
	case err != nil:
		return nil, failed("read values of thread "+key.String(), err)
	case !head.Val():
		return nil, notFound(key)
	case framed == nil:
		return nil, nil
	}
	var values []store.Value
	for i, found := range framed.Val() {
		text, there := found.(string)
		if !there {
			continue
		}
		data, err := s.values.decode(key, "", valueName(kind, ids[i]), text)
		if err != nil {
			return nil, err
		}
		values = append(values, store.Value{Kind: kind, ID: ids[i], Data: data})
	}
	return values, nil
}

// valuesAmong is ValuesOf for a kind whose newest values are in other places than the rest.
func valuesAmong(
	ctx context.Context, s store.Reader, key store.ThreadKey, kind store.Kind, ids []string,
) ([]store.Value, error) {
	all, err := s.Values(ctx, key, kind, "", 0)
	if err != nil {
		return nil, err
	}
	var values []store.Value
	for _, id := range ids {
		if i := slices.IndexFunc(all, func(v store.Value) bool { return v.ID == id }); i >= 0 {
			values = append(values, all[i])
		}
	}
	return values, nil
}

// Values implements [store.Reader]. It reads all values of the kind; only of
// checkpoints are there many, and the history gives pages of those.
func (s *Store) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	if kind == store.KindCheckpoint {
		return s.checkpoints(ctx, key, before, limit)
	}
	tag := tag(key)
	var head *redis.SliceCmd
	var all *redis.MapStringStringCmd
	err := s.replicas.read(ctx, tag, func(pipe redis.Pipeliner) {
		head = pipe.HMGet(ctx, s.keys.thread(tag), append([]string{"h"}, newestFields(kind)...)...)
		all = pipe.HGetAll(ctx, s.keys.values(tag, kind))
	})
	if err != nil {
		return nil, failed("read values of thread "+key.String(), err)
	}
	if head.Val()[0] == nil {
		return nil, notFound(key)
	}
	found := all.Val()
	newest, _, err := parseNewest(kind, head.Val()[1:])
	if err != nil {
		return nil, fmt.Errorf("thread %s, %s: %w", key, kind, err)
	}
	maps.Copy(found, newest)
	var values []store.Value
	for id, framed := range found {
		if before != "" && id >= before {
			continue
		}
		data, err := s.values.decode(key, "", valueName(kind, id), framed)
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
		data, err := s.values.decode(key, "", id, framed)
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
		if what := sizeOf(name); what != "" {
			size[what] += int64(len(value))
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
	n, err := logSize(ctx, s.client, s.keys.log(tag))
	if err != nil {
		return nil, failed("measure thread "+key.String(), err)
	}
	size[store.SizeRecords] += n
	for what, n := range size {
		if n == 0 {
			delete(size, what)
		}
	}
	return size, nil
}

// logSize returns how many bytes the log takes.
func logSize(ctx context.Context, client redis.UniversalClient, log string) (int64, error) {
	var total int64
	for from := "-"; ; {
		page, err := client.XRangeN(ctx, log, from, "+", pageEntries).Result()
		if err != nil {
			return 0, err
		}
		for i := range page {
			for _, value := range page[i].Values {
				text, _ := value.(string)
				total += int64(len(text))
			}
		}
		if len(page) < pageEntries {
			return total, nil
		}
		from = "(" + page[len(page)-1].ID
	}
}
