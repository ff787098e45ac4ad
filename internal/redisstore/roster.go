package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The processes' own announcements are in a hash beside the leases, in "says:PROCESS", and in
// "needs:PROCESS" what link.go says. It is said again with every renewal of the lease, so a
// Redis that has lost it hears it within a third of one.

var _ store.Roster = (*roster)(nil)

// roster is the part of a Store that keeps it.
type roster struct {
	client      redis.UniversalClient
	say, hear   *redis.Script
	leases, key string
	// missing reports whether a process with a lease is not to be seen.
	missing func(process string) bool

	mu   sync.Mutex
	said map[string]string // by this store's processes, of which there is one
}

// newRoster returns that part of a store.
func newRoster(client redis.UniversalClient, k keys) *roster {
	return &roster{
		client: client,
		say:    redis.NewScript(describeLua),
		hear:   redis.NewScript(describedLua),
		leases: k.leases(),
		key:    k.about(),
		said:   map[string]string{},
	}
}

// Describe implements [store.Roster].
func (r *roster) Describe(ctx context.Context, process string, about []byte) error {
	if len(about) > store.MaxDescription {
		return fmt.Errorf("a description of %d bytes: %w", len(about), store.ErrInvalid)
	}
	r.mu.Lock()
	r.said[process] = string(about)
	r.mu.Unlock()
	if err := r.say.Run(ctx, r.client, []string{r.leases, r.key}, process, about).Err(); err != nil {
		return failed("describe the process", err)
	}
	return nil
}

// ofProcess returns what the process has said; empty for nothing.
func (r *roster) ofProcess(process string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said[process]
}

// Described implements [store.Roster].
func (r *roster) Described(ctx context.Context) (map[string][]byte, error) {
	reply, err := r.hear.Run(ctx, r.client, []string{r.leases, r.key}).StringSlice()
	if err != nil {
		return nil, failed("look what the processes say", err)
	}
	said := map[string][]byte{}
	for i := 0; i+1 < len(reply); i += 2 {
		process, about := reply[i], reply[i+1]
		if r.missing(process) {
			continue
		}
		said[process] = nil
		if text, spoke := strings.CutPrefix(about, "+"); spoke {
			said[process] = []byte(text)
		}
	}
	return said, nil
}

// needs returns how long processes need to come back when their connections have broken, as far
// as they have said it.
func (r *roster) needs(ctx context.Context, processes []string) (map[string]time.Duration, error) {
	if len(processes) == 0 {
		return nil, nil
	}
	fields := make([]string, len(processes))
	for i, process := range processes {
		fields[i] = "needs:" + process
	}
	values, err := r.client.HMGet(ctx, r.key, fields...).Result()
	if err != nil {
		return nil, err
	}
	needs := map[string]time.Duration{}
	for i, value := range values {
		text, _ := value.(string)
		if micros, err := strconv.ParseInt(text, 10, 64); err == nil {
			needs[processes[i]] = time.Duration(micros) * time.Microsecond
		}
	}
	return needs, nil
}

const (
	// describeLua keeps what a process says. KEYS: leases, about. ARGV: the process, and what
	// it says. Everything known of forgotten processes is removed.
	describeLua = `
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
  local process = field:match('^%a+:(.*)$')
  if not process or not redis.call('ZSCORE', KEYS[1], process) then redis.call('HDEL', KEYS[2], field) end
end
redis.call('HSET', KEYS[2], 'says:' .. ARGV[1], ARGV[2])
return 0
`
	// describedLua returns all living processes, each followed by what it says, after a plus sign.
	// KEYS: leases, about.
	describedLua = timeLua + `
local found = {}
for _, p in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')) do
  local says = redis.call('HGET', KEYS[2], 'says:' .. p)
  found[#found + 1] = p
  found[#found + 1] = says and '+' .. says or ''
end
return found
`
)
