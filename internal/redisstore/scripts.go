package redisstore

// The Lua scripts: the long ones are files, the short ones stand here. Every atomic step is a
// script, and every script touches the keys of one hash slot only.

import (
	"context"
	_ "embed" // the long scripts are files, so that editors know their language
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed shared.lua
var sharedLua string

//go:embed commit.lua
var commitLua string

//go:embed append.lua
var appendLua string

//go:embed reserve.lua
var reserveLua string

//go:embed settle.lua
var settleLua string

// scripts are called by their hash; a server that has forgotten one is sent its text.
type scripts struct {
	client redis.UniversalClient

	commit, append, post, remove, watch, release, announce, retire, lease *redis.Script
	handOver, reserve, settle, used, putHint, hints                       *redis.Script
}

func newScripts(client redis.UniversalClient, k keys) *scripts {
	// Scripts cannot ask for the number of their database, so that of channels is in the text.
	database := fmt.Sprintf("local DATABASE = '%s'\n", k.database)
	return &scripts{
		client:   client,
		commit:   redis.NewScript(database + sharedLua + commitLua),
		append:   redis.NewScript(database + sharedLua + appendLua),
		post:     redis.NewScript(postLua),
		remove:   redis.NewScript(removeLua),
		watch:    redis.NewScript(watchLua),
		release:  redis.NewScript(releaseLua),
		announce: redis.NewScript(announceLua),
		retire:   redis.NewScript(retireLua),
		lease:    redis.NewScript(leaseLua),
		handOver: redis.NewScript(handOverLua),
		reserve:  redis.NewScript(reserveLua),
		settle:   redis.NewScript(settleLua),
		used:     redis.NewScript(usedLua),
		putHint:  redis.NewScript(putHintLua),
		hints:    redis.NewScript(hintsLua),
	}
}

// The results of the scripts that write a thread. With codeDouble and codeParent comes the
// number of the message, times 8.
const (
	codeOK       = iota
	codeAlready  // this commit was written before
	codeFenced   // the fence is not the expected one
	codeConflict // the position is not the expected one
	codeDouble   // the message already exists
	codeParent   // the message's parent is unknown
	codeTooNew   // the thread has a newer layout
	codeUnclear  // append.lua leaves it to commit.lua
)

// run runs a script and returns the number that it returns.
func (s *scripts) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (int, error) {
	return script.Run(ctx, s.client, keys, args...).Int()
}

// call is a script with its keys and arguments.
type call struct {
	script  *redis.Script
	keys    []string
	args    []any
	appends bool // it is append.lua, which takes several commits in one call
}

// run makes the call and returns the number that the script returns.
func (c call) run(ctx context.Context, client redis.UniversalClient) (int, error) {
	return codeOf(c.script.Run(ctx, client, c.keys, c.args...), 0)
}

// codeOf returns the number that a script returns or, if it returns several, the one at a
// place.
func codeOf(reply *redis.Cmd, place int) (int, error) {
	all, ok := reply.Val().([]any)
	if !ok || reply.Err() != nil {
		return reply.Int()
	}
	if place < len(all) {
		if n, ok := all[place].(int64); ok {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("a script has returned %v", all)
}

// postLua adds an inbox item, and says so on the channel of the process that owns the thread; if
// nobody hears that, on the one that everybody listens to. KEYS: thread, inbox. ARGV: layout, id,
// data, tag, that channel, and what the names of the owners' channels begin and end with. Without that
// channel nobody is told. Returns 0, 1 for an unknown thread, 6 for one that is too new; then the owner,
// which is empty if there is none.
const postLua = `
local head = redis.call('HMGET', KEYS[1], 'f', 'h')
if not head[2] then return { 1, '' } end
if not head[1] or (tonumber(head[1]) or 0) > tonumber(ARGV[1]) then return { 6, '' } end
local at = 1
local function text()
  local n = head[2]:match('^(%d+):', at)
  if not n then return '' end
  local from = at + #n + 1
  at = from + tonumber(n)
  return head[2]:sub(from, at - 1)
end
text() -- the ETag
text() -- the nonce
at = (head[2]:find(';', at, true) or #head[2]) + 1
text() -- the user
local owner = text()
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return { 0, owner } end
local number = redis.call('HINCRBY', KEYS[1], 'i', 1)
redis.call('HSET', KEYS[2], ARGV[2], number .. ':' .. ARGV[3])
if ARGV[5] == '' then return { 0, owner } end
local heard = owner ~= '' and redis.pcall('PUBLISH', ARGV[6] .. owner .. ARGV[7], ARGV[4])
if type(heard) ~= 'number' or heard == 0 then redis.call('PUBLISH', ARGV[5], ARGV[4]) end
return { 0, owner }
`

// removeLua deletes a thread. KEYS: thread, log, and all others that it has. ARGV: the
// expected position, its fence as appendFence writes it, the layout, and what the keys
// of values begin with; and, to remove a thread whose head cannot be read, that head and
// its layout as they were found. Returns 0, 1 for an unknown thread, 2 fenced, 3 conflict,
// 6 too new.
const removeLua = `
local head = redis.call('HMGET', KEYS[1], 'h', 'f')
if not head[1] then return 1 end
if ARGV[5] then
  if head[1] ~= ARGV[5] or (head[2] or '') ~= ARGV[6] then return 3 end
elseif (tonumber(head[2]) or 0) > tonumber(ARGV[3]) then
  return 6
elseif head[1]:sub(1, #ARGV[1]) ~= ARGV[1] then
  local etag = tonumber(head[1]:match('^%d+'))
  local fence = head[1]:sub(#tostring(etag) + 2 + etag)
  if ARGV[2] ~= '0:0,' and fence:sub(1, #ARGV[2]) ~= ARGV[2] then return 2 end
  return 3
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field:sub(1, 2) == 'k:' then redis.call('DEL', ARGV[4] .. field:sub(3)) end
end
redis.call('DEL', unpack(KEYS))
return 0
`

// watchLua asks for commits to be published until a time. KEYS: thread. ARGV: that time, in ms, and the
// field that says it. Returns 1, or 0 if there is no such thread yet.
const watchLua = `
if redis.call('HEXISTS', KEYS[1], 'h') == 0 then return 0 end
local has = redis.call('HGET', KEYS[1], ARGV[2])
if not has or tonumber(has) < tonumber(ARGV[1]) then redis.call('HSET', KEYS[1], ARGV[2], ARGV[1]) end
return 1
`

// releaseLua removes the hint that a process has a thread, unless the hint has been
// written again since. KEYS: owned. ARGV: tag, score.
const releaseLua = `
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and math.floor(tonumber(score)) == tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0
`

// Leases use the clock of Redis, which all processes share.
const (
	// timeLua is how scripts read it. Times are in microseconds, which a score represents exactly.
	timeLua = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
`
	// announceLua renews a lease, and says again what is missing of what the process has said.
	// KEYS: leases, about. ARGV: the process, how long its lease lasts in µs, what it says, how many
	// µs it needs to come back when its connections have broken, and 1 if it says that it looks at the
	// field W; '', 0 and 0 for nothing.
	announceLua = timeLua + `
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
if ARGV[3] == '' and ARGV[4] == '0' and ARGV[5] == '0' then return now end
local has = redis.call('HMGET', KEYS[2], 'says:' .. ARGV[1], 'needs:' .. ARGV[1], 'shards:' .. ARGV[1])
if ARGV[3] ~= '' and has[1] ~= ARGV[3] then redis.call('HSET', KEYS[2], 'says:' .. ARGV[1], ARGV[3]) end
if ARGV[4] ~= '0' and has[2] ~= ARGV[4] then redis.call('HSET', KEYS[2], 'needs:' .. ARGV[1], ARGV[4]) end
if ARGV[5] ~= '0' and not has[3] then redis.call('HSET', KEYS[2], 'shards:' .. ARGV[1], ARGV[5]) end
return now
`
	// A retired process stays in the list, because it may have left threads behind;
	// Owned looks for them. Its score says that it did not just fall silent. ARGV: the
	// process, the channel of the peers, and what to say there, which may not be allowed.
	retireLua = `
redis.call('ZADD', KEYS[1], 'XX', 0, ARGV[1])
redis.pcall('PUBLISH', ARGV[2], ARGV[3])
return 0
`
	// handOverLua names the heir of a thread. KEYS: leases. ARGV: the process that
	// leaves it, which of the others is the heir, the channel of the peers, and what to say
	// there before the heir's name.
	handOverLua = timeLua + `
local living = {}
for _, p in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')) do
  if p ~= ARGV[1] then living[#living + 1] = p end
end
local heir = #living > 0 and living[ARGV[2] % #living + 1] or ''
redis.call('PUBLISH', ARGV[3], ARGV[4] .. heir)
return 0
`
	// leaseLua returns when a process's lease ends and what time it is; nothing for a
	// process that is not in the list.
	leaseLua = timeLua + `
local till = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not till then return {} end
return {tonumber(till), now}
`
)

// usedLua reads what accounts have counted. KEYS: clock, accounts. Returns a number for
// each account.
const usedLua = `
local now, used = tonumber(redis.call('GET', KEYS[1]) or '0'), {}
for n = 2, #KEYS do
  local account = redis.call('HMGET', KEYS[n], 'n', 'e')
  local expires = tonumber(account[2] or '0')
  used[n - 1] = (expires == 0 or expires > now) and account[1] or '0'
end
return used
`

// Hints go by the clock of Redis too; see keys.
const (
	// putHintLua writes a hint and removes those that are over. KEYS: hints. ARGV: name,
	// data, how long it lasts in µs, and how long any hint may last in ms.
	putHintLua = timeLua + `
local all = redis.call('HGETALL', KEYS[1])
for n = 1, #all, 2 do
  local till = tonumber(all[n + 1]:match('^%d+') or '0') or 0
  if till <= now then redis.call('HDEL', KEYS[1], all[n]) end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f:', now + ARGV[3]) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 0
`
	// hintsLua returns what time it is, and all hints with their names.
	hintsLua = timeLua + `
return { string.format('%.0f', now), redis.call('HGETALL', KEYS[1]) }
`
)
