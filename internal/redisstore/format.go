package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The data format that all processes write, and what each of them reads. It is kept beside
// the leases, in one slot with them, so that a process that reads less either holds a newer
// format back or is told of it: nothing can come in between.

var _ store.FormatKeeper = (*formats)(nil)

// formats is the part of a Store that keeps them.
type formats struct {
	client      redis.UniversalClient
	agree, list *redis.Script
	leases, key string
	written     written
}

// formatNewest is the format whose writers keep the index, see thread.FormatIndexed, and whose readers
// know common letters in values.
const formatNewest = 2

// written is the format that this process was told to write; 0 if it was not told yet.
type written struct{ atomic.Int64 }

// newest reports whether all that read and write, as far as this process knows, do as this version does.
func (w *written) newest() bool { return w.Load() >= formatNewest }

// newFormats returns that part of a store.
func newFormats(client redis.UniversalClient, k keys) *formats {
	return &formats{
		client: client,
		agree:  redis.NewScript(agreeLua),
		list:   redis.NewScript(formatsLua),
		leases: k.leases(),
		key:    k.formats(),
	}
}

// refuseEarly returns an error if the keys are those of a build from before the first
// release, and no server of a release has ever used them.
func refuseEarly(ctx context.Context, client redis.UniversalClient, k keys) error {
	pipe := client.Pipeline()
	own, early := pipe.Exists(ctx, k.leases(), k.formats()), pipe.Exists(ctx, k.early())
	if _, err := pipe.Exec(ctx); err != nil {
		return failed("look whose keys Redis has", err)
	}
	if own.Val() > 0 || early.Val() == 0 {
		return nil
	}
	return fmt.Errorf("the keys in Redis that begin with %q are those of a build from before the first release, and "+
		"were left as they are: export their threads with that build (holdfast export STORE --thread ID), and import "+
		"them with this one (holdfast import) under another prefix or into another database", k.prefix)
}

// AgreeFormat implements [store.FormatKeeper].
func (s *formats) AgreeFormat(ctx context.Context, process string, terms store.FormatTerms) (store.Formats, error) {
	reply, err := s.agree.Run(ctx, s.client, []string{s.leases, s.key}, process, terms.Reads, terms.Wants, terms.Knows).
		StringSlice()
	if err != nil {
		return store.Formats{}, failed("agree on the data format", s.explain(ctx, err))
	}
	f, err := parseFormats(reply)
	if err == nil {
		s.written.Store(int64(f.Write))
	}
	if err == nil && f.Write > terms.Reads {
		err = &store.VersionError{What: "the store", Stored: f.Write, Known: terms.Reads}
	}
	return f, err
}

// Formats implements [store.FormatKeeper].
func (s *formats) Formats(ctx context.Context) (store.Formats, error) {
	reply, err := s.list.Run(ctx, s.client, []string{s.leases, s.key}).StringSlice()
	if err != nil {
		return store.Formats{}, failed("look for the data format", s.explain(ctx, err))
	}
	return parseFormats(reply)
}

// explain says which of the keys that all processes share has another type, if that is the
// error: all servers stop at it.
func (s *formats) explain(ctx context.Context, err error) error {
	if !connection.WrongType(err) {
		return err
	}
	for key, want := range map[string]string{s.leases: "zset", s.key: "hash"} {
		is, failed := s.client.Type(ctx, key).Result()
		if failed == nil && is != want && is != "none" {
			return fmt.Errorf("%w: the key %q is a %s, and should be a %s: look what else writes it, and delete it "+
				"(DEL); the servers write it again", errDamaged, key, is, want)
		}
	}
	return err
}

// parseFormats reads the reply of a script: the format, and what processes read, each as
// "number process".
func parseFormats(reply []string) (f store.Formats, err error) {
	if len(reply) == 0 {
		return f, errDamaged
	}
	if f.Write, err = strconv.Atoi(reply[0]); err != nil {
		return f, errDamaged
	}
	f.Reads = map[string]int{}
	for _, text := range reply[1:] {
		number, process, _ := strings.Cut(text, " ")
		if f.Reads[process], err = strconv.Atoi(number); err != nil {
			return f, errDamaged
		}
	}
	return f, nil
}

// In the hash of formats, "write" is the format of the store, and "reads:PROCESS" what a
// process reads.
const (
	// readersLua defines readers: what the living processes read, as parseFormats expects
	// it, if it is less than a number; 0 for one that has yet to say it.
	readersLua = `
local function readers(less)
  ` + timeLua + `
  local found = {}
  for _, p in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')) do
    local reads = tonumber(redis.call('HGET', KEYS[2], 'reads:' .. p) or '0') or 0
    if reads < less then found[#found + 1] = reads .. ' ' .. p end
  end
  return found
end
`
	// agreeLua agrees on the format. KEYS: leases, formats. ARGV: the process, and its terms:
	// what it reads, wants and knows. When a process comes, what is known of those that are
	// forgotten is removed. Returns the format, and who holds
	// the one back that is wanted.
	agreeLua = readersLua + `
local reads, wants, knows = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local said = redis.call('HMGET', KEYS[2], 'write', 'reads:' .. ARGV[1])
local has = tonumber(said[1] or '0') or 0
local write = math.max(has, knows)
if write == 0 then write = reads end
if said[2] ~= ARGV[2] then
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if field:sub(1, 6) == 'reads:' and not redis.call('ZSCORE', KEYS[1], field:sub(7)) then
      redis.call('HDEL', KEYS[2], field)
    end
  end
  redis.call('HSET', KEYS[2], 'reads:' .. ARGV[1], ARGV[2])
end
local behind = {}
if reads >= write and wants > write then
  behind = readers(wants)
  if #behind == 0 then write = wants end
end
if write ~= has then redis.call('HSET', KEYS[2], 'write', string.format('%d', write)) end
table.insert(behind, 1, string.format('%d', write))
return behind
`
	// formatsLua returns the format, and what all living processes read. KEYS: leases, formats.
	formatsLua = readersLua + `
local found = readers(math.huge)
table.insert(found, 1, redis.call('HGET', KEYS[2], 'write') or '0')
return found
`
)
