package redisstore

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The names of all keys and channels.

// keys makes the names of keys. {thread} is the escaped tenant and thread, in braces, so
// that a cluster keeps all keys of a thread in one hash slot.
//
//	hf:{thread}:t          hash    the head, and the messages (fields "m:"+id)
//	hf:{thread}:l          stream  the log; an entry's id is the number of its last record
//	hf:{thread}:i          hash    the inbox, by item id
//	hf:{thread}:v:KIND     hash    the values of a kind, by id
//	hf:{thread}:h          zset    the ids of the checkpoints: the history
//
// Across threads there are only hints, each written before the commit that it
// announces. Readers check them against the heads and correct them.
//
//	hf:spans:{owner}       zset    the spans of 30 days (since 1970) with a list of an owner's threads;
//	                               readers take empty ones off
//	hf:span:{owner/span}   zset    those last active in that span, by the minute
//	hf:active:{owner}      zset    all of them: only what versions without an index read or wrote
//	hf:owned:{process}     zset    the threads a process has claimed, by when it did
//	hf:leases              zset    the processes, by the end of their lease
//	hf:{hf:leases}:about   hash    what each process says of itself; see roster.go and wire.go
//	hf:{hf:leases}:formats  hash   the data format, and what each process reads; see format.go
//	hf:children:{thread}   zset    the threads that named this one as their parent
//	hf:days:{tenant/}      zset    the days with a list of the tenant's threads; readers take empty
//	                               ones off
//	hf:day:{tenant/day}    zset    those last active on that day (since 1970), by the minute
//	hf:list:{list/tenant/group}  zset  the threads in a list of the index, each with its place,
//	                               both in ms since 1970; a long one ends with /0 to /15, and
//	                               all of what runs for a tenant are one set: see listings.go
//	hf:index               string  how far the walk has come that fills the index
//	hf:hints               hash    what processes tell each other, by name: until when (µs since
//	                               1970), and the hint; the key expires when all of them have
//
// At level failover there is a small key beside each WAIT, for ten seconds; see replicas.go:
//
//	hf:ack:{…}             string  nothing; in the slot of what is waited for
//
// A tenant's counts are apart from the threads, and also in one slot. A key expires with what
// it holds; see reserve.lua.
//
//	hf:ledger:{tenant/}:a:ACCOUNT  hash    n counted, e expires (ms since 1970, 0 never), b born
//	hf:ledger:{tenant/}:r:ID       hash    a reservation that is held: e expires, and by
//	                                       a:ACCOUNT the amount and when the account was born
//	hf:ledger:{tenant/}:c          string  the time of the last reservation, for an hour
//
// The fields of a thread's hash other than messages are letters:
//
//	f layout    h the head: position, user, process, time, checksum; see appendHead
//	s state     o number of messages   l id of the last message
//	i number of the last inbox item     c number of checkpoints in the history
//	w until when (ms since 1970) watchers in other processes want its commits published
//	W the same, for watchers that listen to the channel of the shard, too
//	p the parent thread   k:KIND a kind that is not one of the server's
//	j the lists of the index that the thread is in; see listings.go
//	u the user again, for readers that cannot read the head
//
// and, so that what most commits write is one command (newest.go, checkpoints.go):
//
//	e the newest entry of the log, if it is small; see shared.lua. The stream may lack it. Its
//	  entries are of one commit (field "") or of two (fields "e" and "f")
//	t number of the last record that was removed from the beginning of the log
//	n the intents: each id and each value, with its length before it
//	q which kinds of i (intents) and p (pending writes) may have values in their own hashes
//	x number of the checkpoints that are in x0, x1 and so on, how many are kept in all (0 for
//	  all), and the newest id; each of them is an id, with its length before it, and the value
//
// Every key and channel begins with the store's prefix, here "hf:". A post is published on the
// channel of the process that owns the thread, hf:inbox:PROCESS, with the thread's tag. If nobody
// hears that, it is published on hf:inbox, to which all processes listen: the owner may be of a
// version that knows only that one, and such a version posts only there. The key of a thread's log
// is also the name of the channel of its commits. On the channel hf:peers processes say that they
// claim threads or leave them; see parseNews. Each subscribes to hf:{presence}:PROCESS, and to
// hf:{presence}, on which nothing is ever published. Pub/Sub knows no databases, so outside of
// database 0 the number of the database ends the name of every channel: hf:inbox:db3.
//
// In a cluster of Redis 7 or newer, presence, the owners' inboxes and the commits of a thread have
// channels of the shards, which do not go through all nodes; see shards.go.
type keys struct {
	prefix string
	// database ends the names of channels; it is empty in database 0.
	database string
}

// keysOf returns the names in the database that the client uses.
func keysOf(client redis.UniversalClient, prefix string) keys {
	k := keys{prefix: prefix}
	if single, is := client.(*redis.Client); is && single.Options().DB != 0 {
		k.database = ":db" + strconv.Itoa(single.Options().DB)
	}
	return k
}

// member returns the name in a sorted set's entry.
func member(z redis.Z) string {
	m, _ := z.Member.(string)
	return m
}

// isCluster reports whether keys are on several nodes.
func isCluster(client redis.UniversalClient) bool {
	_, is := client.(*redis.ClusterClient)
	return is
}

const (
	fieldLayout = "f"
	fieldParent = "p"
	fieldUser   = "u"
	fieldKind   = "k:"
	// These two say until when watchers want the thread's commits published.
	fieldWatched, fieldWatchedAtShard = "w", "W"
)

// knownKinds are those that Delete always deletes; others are listed in the thread.
var knownKinds = store.Kinds()

func (k keys) leases() string { return k.prefix + "leases" }

// formats is in the slot of leases, so that one script can look at both.
func (k keys) formats() string { return k.prefix + "{" + k.leases() + "}:formats" }

// about is there, too.
func (k keys) about() string { return k.prefix + "{" + k.leases() + "}:about" }

// early is what a build from before the first release has called leases.
func (k keys) early() string { return k.prefix + "processes" }

func (k keys) hints() string { return k.prefix + "hints" }

func (k keys) inboxChannel() string { return k.prefix + "inbox" + k.database }

// ownInbox is where what is posted to the threads of a process is published.
func (k keys) ownInbox(process string) string { return k.ownInboxes() + process + k.database }

// ownInboxes is what the names of those channels begin with.
func (k keys) ownInboxes() string { return k.prefix + "inbox:" }

// isInbox reports whether posts are published on the channel.
func (k keys) isInbox(channel string) bool {
	return channel == k.inboxChannel() || strings.HasPrefix(channel, k.ownInboxes())
}

func (k keys) peersChannel() string { return k.prefix + "peers" + k.database }

// commitsChannel is where the commits of a thread are published.
func (k keys) commitsChannel(tag string) string { return k.log(tag) + k.database }

// presence is the channel that shows that a process lives. In a cluster all of them are in
// one slot.
func (k keys) presence(process string) string { return k.prefix + "{presence}:" + process + k.database }

// allPresent is the channel that shows how many processes live.
func (k keys) allPresent() string { return k.prefix + "{presence}" + k.database }

// shown are the channels that a process that lives subscribes to, its own first.
func (k keys) shown(process string) []string { return []string{k.presence(process), k.allPresent()} }

// tag names a thread within keys. No two threads have the same tag, and none contains
// a brace.
func tag(key store.ThreadKey) string {
	return url.QueryEscape(key.Tenant) + "/" + url.QueryEscape(key.Thread)
}

// parseTag is the reverse of tag.
func parseTag(s string) (store.ThreadKey, bool) {
	tenant, thread, found := strings.Cut(s, "/")
	t, err := url.QueryUnescape(tenant)
	n, err2 := url.QueryUnescape(thread)
	return store.ThreadKey{Tenant: t, Thread: n}, found && err == nil && err2 == nil
}

func (k keys) thread(tag string) string { return k.prefix + "{" + tag + "}:t" }

func (k keys) log(tag string) string { return k.prefix + "{" + tag + "}:l" }

// threadAndLog returns both, in one piece of memory.
func (k keys) threadAndLog(tag string) []string {
	both := k.prefix + "{" + tag + "}:t" + k.prefix + "{" + tag + "}:l"
	return []string{both[:len(both)/2], both[len(both)/2:]}
}

func (k keys) inbox(tag string) string { return k.prefix + "{" + tag + "}:i" }

func (k keys) history(tag string) string { return k.prefix + "{" + tag + "}:h" }

func (k keys) values(tag string, kind store.Kind) string {
	return k.prefix + "{" + tag + "}:v:" + url.QueryEscape(string(kind))
}

func (k keys) active(owner holdfast.Principal) string {
	return k.prefix + "active:{" + url.QueryEscape(owner.Tenant) + "/" + url.QueryEscape(owner.User) + "}"
}

func (k keys) owned(process string) string {
	return k.prefix + "owned:{" + url.QueryEscape(process) + "}"
}

func (k keys) children(parent store.ThreadKey) string {
	return k.prefix + "children:{" + tag(parent) + "}"
}

func (k keys) ledger(tenant string) string {
	return k.prefix + "ledger:{" + url.QueryEscape(tenant) + "/}:"
}

func (k keys) account(tenant, name string) string {
	return k.ledger(tenant) + "a:" + url.QueryEscape(name)
}

func (k keys) reservation(tenant, id string) string {
	return k.ledger(tenant) + "r:" + url.QueryEscape(id)
}

func (k keys) clock(tenant string) string { return k.ledger(tenant) + "c" }

// heads is the pattern that the keys of all threads match.
func (k keys) heads() string {
	return strings.NewReplacer("\\", "\\\\", "*", "\\*", "?", "\\?", "[", "\\[").Replace(k.prefix) + "{*}:t"
}

// headTag is the reverse of thread; it returns false for any other key.
func (k keys) headTag(key string) (string, bool) {
	rest, ours := strings.CutPrefix(key, k.prefix+"{")
	tag, isHead := strings.CutSuffix(rest, "}:t")
	return tag, ours && isHead
}

// tagOf is the reverse of commitsChannel.
func (k keys) tagOf(channel string) string {
	return strings.TrimSuffix(strings.TrimPrefix(channel, k.prefix+"{"), "}:l"+k.database)
}
