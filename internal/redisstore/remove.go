package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/redis/go-redis/v9"
)

// Delete implements [holdfast.Committer]. The hints go last: one that stays
// behind names a thread that its reader does not find.
func (s *Store) Delete(ctx context.Context, key holdfast.ThreadKey, at holdfast.Position) error {
	tag := tag(key)
	fields, err := s.client.HMGet(ctx, s.keys.thread(tag), "v", "h", fieldParent).Result()
	if err != nil {
		return failed("delete thread "+key.String(), err)
	}
	head, err := decodeHead(key, fields[:2])
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	keys := []string{s.keys.thread(tag), s.keys.log(tag), s.keys.inbox(tag), s.keys.history(tag)}
	for _, k := range knownKinds {
		keys = append(keys, s.keys.values(tag, k))
	}
	n, err := s.runScript(ctx, s.scripts.remove, keys,
		appendPosition(nil, at), appendFence(nil, at.Fence), formatText, s.keys.values(tag, ""))
	switch {
	case err != nil:
		return failed("delete thread "+key.String(), err)
	case n == codeTooNew:
		return tooNew(key)
	case n == codeFenced, n == codeConflict:
		return s.conflict(ctx, key, at, n)
	}
	s.hints.drop(tag)
	s.Committed(key)
	parent, _ := fields[2].(string)
	return s.unlist(ctx, head, parent)
}

// unlist removes the hints of a thread that is not there any more.
func (s *Store) unlist(ctx context.Context, head *holdfast.Head, parent string) error {
	pipe := s.client.Pipeline()
	owner := holdfast.Principal{Tenant: head.Key.Tenant, User: head.User}
	pipe.ZRem(ctx, s.keys.active(owner), head.Key.Thread)
	if head.Process != "" {
		pipe.ZRem(ctx, s.keys.owned(head.Process), tag(head.Key))
	}
	if parent != "" {
		pipe.ZRem(ctx, s.keys.children(holdfast.ThreadKey{Tenant: head.Key.Tenant, Thread: parent}), head.Key.Thread)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return failed("unlist thread "+head.Key.String(), err)
	}
	return nil
}

// Size implements [holdfast.Reader].
func (s *Store) Size(ctx context.Context, key holdfast.ThreadKey) (map[string]int64, error) {
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
			size[holdfast.SizeMessages] += int64(len(value))
		}
		if escaped, ok := strings.CutPrefix(name, fieldKind); ok {
			kind, err := url.QueryUnescape(escaped)
			if err != nil {
				return nil, fmt.Errorf("thread %s has the kind %q: %w", key, escaped, errDamaged)
			}
			kinds = append(kinds, holdfast.Kind(kind))
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
	if size[holdfast.SizeRecords], err = s.logSize(ctx, tag); err != nil {
		return nil, failed("measure thread "+key.String(), err)
	}
	for what, n := range size {
		if n == 0 {
			delete(size, what)
		}
	}
	return size, nil
}

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

// Walk implements [holdfast.Directory]. It looks at the keys themselves, a page of
// the keyspace at a time, so it finds what no hint names; it is for maintenance and
// costs as much as Redis has keys.
func (s *Store) Walk(ctx context.Context, after string, limit int) (heads []holdfast.Head, next string, err error) {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return nil, "", failed("list all threads", err)
	}
	node, cursor, err := parseWalk(after)
	if err != nil || node >= len(nodes) {
		return nil, "", err
	}
	// A thread has about ten keys.
	found, cursor, err := nodes[node].Scan(ctx, cursor, s.keys.heads(), int64(10*max(limit, 1))).Result()
	if err != nil {
		return nil, "", failed("list all threads", err)
	}
	if cursor == 0 {
		node++
	}
	if cursor != 0 || node < len(nodes) {
		next = fmt.Sprintf("%d/%d", node, cursor)
	}
	heads, err = s.headsOf(ctx, found)
	return heads, next, err
}

func parseWalk(after string) (node int, cursor uint64, err error) {
	if after == "" {
		return 0, 0, nil
	}
	n, c, _ := strings.Cut(after, "/")
	node, err1 := strconv.Atoi(n)
	cursor, err2 := strconv.ParseUint(c, 10, 64)
	if err := errors.Join(err1, err2); err != nil || node < 0 {
		return 0, 0, fmt.Errorf("%q is no place in the list of all threads: %w", after, holdfast.ErrInvalid)
	}
	return node, cursor, nil
}

// nodes are the servers that hold keys, in an order that stays.
func (s *Store) nodes(ctx context.Context) ([]redis.Cmdable, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.client}, nil
	}
	type node struct {
		addr   string
		client redis.Cmdable
	}
	found := make(chan node, 1024)
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		found <- node{c.Options().Addr, c}
		return nil
	})
	close(found)
	var all []node
	for n := range found {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	clients := make([]redis.Cmdable, len(all))
	for i := range all {
		clients[i] = all[i].client
	}
	return clients, err
}

// headsOf reads the heads under the keys; what is gone or is no head is left out.
func (s *Store) headsOf(ctx context.Context, found []string) ([]holdfast.Head, error) {
	pipe := s.client.Pipeline()
	var keys []holdfast.ThreadKey
	var replies []*redis.SliceCmd
	for _, name := range found {
		tag, isHead := s.keys.headTag(name)
		key, ok := parseTag(tag)
		if !isHead || !ok {
			continue
		}
		keys = append(keys, key)
		replies = append(replies, pipe.HMGet(ctx, name, "v", "h"))
	}
	if len(replies) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("list all threads", err)
	}
	var heads []holdfast.Head
	for i, reply := range replies {
		h, err := decodeHead(keys[i], reply.Val())
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		heads = append(heads, *h)
	}
	return heads, nil
}

// Children implements [holdfast.Directory]. What the hints name and the heads do
// not bear out is left out.
func (s *Store) Children(ctx context.Context, parent holdfast.ThreadKey, after string, limit int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	var ids []string
	for len(ids) < limit {
		count := int64(limit - len(ids))
		page, err := s.client.ZRangeByLex(ctx, s.keys.children(parent), &redis.ZRangeBy{Min: from, Max: "+", Count: count}).Result()
		if err != nil {
			return nil, failed("list the children of thread "+parent.String(), err)
		}
		real, err := s.realChildren(ctx, parent, page)
		if err != nil {
			return nil, err
		}
		ids = append(ids, real...)
		if int64(len(page)) < count {
			break
		}
		from = "(" + page[len(page)-1]
	}
	return ids, nil
}

func (s *Store) realChildren(ctx context.Context, parent holdfast.ThreadKey, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		child := holdfast.ThreadKey{Tenant: parent.Tenant, Thread: id}
		replies[i] = pipe.HGet(ctx, s.keys.thread(tag(child)), fieldParent)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed("list the children of thread "+parent.String(), err)
	}
	var real []string
	for i, id := range ids {
		if replies[i].Val() == parent.Thread {
			real = append(real, id)
		}
	}
	return real, nil
}
