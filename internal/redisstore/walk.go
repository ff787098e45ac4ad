package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// A walk past all threads goes through the keyspace of each server in turn, with Redis's own SCAN. Its
// cursors mean nothing to another process of Redis, since each orders its keys by a seed of its own. So a
// position names that process, too, and after a restart or a failover the walk begins again.

// position is where a walk has come to.
type position struct {
	node   int    // which of the servers
	cursor uint64 // of its SCAN
	nodes  string // which servers there are
	run    string // the process of the server that gave the cursor; empty if Redis does not tell
}

func (p position) String() string {
	return fmt.Sprintf("%d/%d/%s/%s", p.node, p.cursor, p.nodes, p.run)
}

// parsePosition reads a position that Walk has returned; empty is the beginning.
func parsePosition(after string) (p position, err error) {
	if after == "" {
		return position{}, nil
	}
	f := append(strings.SplitN(after, "/", 4), "", "", "")
	var errs [2]error
	p.node, errs[0] = strconv.Atoi(f[0])
	p.cursor, errs[1] = strconv.ParseUint(f[1], 10, 64)
	p.nodes, p.run = f[2], f[3]
	if err := errors.Join(errs[:]...); err != nil || p.node < 0 {
		return position{}, fmt.Errorf("%q is not a position in the list of all threads: %w", after, store.ErrInvalid)
	}
	return p, nil
}

// scan returns a page of a server's keys, where the next one begins, and which process of the server said so.
func scan(
	ctx context.Context, client redis.Cmdable, cursor uint64, match string, count int64,
) (found []string, next uint64, run string, err error) {
	pipe := client.Pipeline()
	page, about := pipe.Scan(ctx, cursor, match, count), pipe.InfoMap(ctx, "server")
	_, _ = pipe.Exec(ctx) // each command has its error
	found, next, err = page.Result()
	if info, err := about.Result(); err == nil {
		run = info["Server"]["run_id"]
	}
	return found, next, run, err
}

// node is a server that has keys.
type node struct {
	addr   string
	client redis.Cmdable
}

// nodesOf returns the servers that have keys, always in the same order.
func nodesOf(ctx context.Context, client redis.UniversalClient) ([]node, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return []node{{client: client}}, nil
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
	return all, err
}

// namesOf returns what changes when there are other servers.
func namesOf(nodes []node) string {
	h := fnv.New64a()
	for _, n := range nodes {
		_, _ = io.WriteString(h, n.addr+"\n")
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
