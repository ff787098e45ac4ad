package redisstore

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The lists that commits name: what is written of them, and when. A thread's hash has them in one
// field, which is written only if they change; and only then are the lists themselves written to.

const (
	fieldListings = "j"
	listingsName  = "listings"
	// listParts is how many sets a long list is divided into, and partSpan how much time
	// after each other, in ms, goes into the same one: what happens in a short time is in one or two.
	listParts = 16
	partSpan  = 60_000
)

// listingsOf returns the listings of a commit as they are stored: never nil.
func listingsOf(c *store.Commit) []store.Listing {
	kept := make([]store.Listing, len(c.Listings))
	for i, l := range c.Listings {
		kept[i] = store.Listing{List: l.List, At: time.UnixMilli(l.At.UnixMilli()).UTC()}
	}
	return kept
}

func encodeListings(listings []store.Listing) []byte {
	var b []byte
	for _, l := range listings {
		b = appendName(appendName(appendName(b, l.Name), l.Tenant), l.Group)
		b = binary.AppendVarint(b, l.At.UnixMilli())
	}
	return b
}

func decodeListings(raw []byte) ([]store.Listing, error) {
	var listings []store.Listing
	for rest := string(raw); rest != ""; {
		var l store.Listing
		for _, name := range []*string{&l.Name, &l.Tenant, &l.Group} {
			var ok bool
			if *name, rest, ok = cutName(rest); !ok {
				return nil, errDamaged
			}
		}
		ms, n := binary.Varint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
		if n <= 0 {
			return nil, errDamaged
		}
		l.At, rest = time.UnixMilli(ms).UTC(), rest[n:]
		listings = append(listings, l)
	}
	return listings, nil
}

// divided are the names of the lists of a tenant, or of a user, that are divided like those of all tenants,
// because they may have very many threads.
var divided = []string{store.ListTenantAsking, store.ListTenantStopped, store.ListStopped}

// banded are the names of the lists of what runs. All that a tenant has of them are in one set, each in a band of
// its scores, so that a run which begins, or ends, is entered in all of them, or removed, by one command.
var banded = []string{store.ListTenantRunning, store.ListRunning, store.ListRun}

const (
	// bandBits is how many bits of a score in a band are the place, in ms since 1970: it lasts until 2109.
	bandBits = 42
	// bands is how many there are, besides that of the tenant's list: a score has 53 bits. Lists that have the
	// same one are told apart by their members.
	bands = 1<<11 - 1
)

// bandOf returns the band of a list, and how its members end; 0 and empty for one that has a set of its own.
func bandOf(l store.List) (band int64, suffix string) {
	if l.Name == store.ListTenantRunning || !slices.Contains(banded, l.Name) {
		return 0, ""
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(l.Name + "/" + l.Group)) // it never fails
	hash := sum.Sum64()
	return int64(1 + hash%bands), strconv.FormatUint(hash, 36)
}

// scoreOf returns the score of a place in a list.
func scoreOf(l store.List, ms int64) int64 {
	if !slices.Contains(banded, l.Name) {
		return ms
	}
	band, _ := bandOf(l)
	return band<<bandBits + min(max(ms, 0), 1<<bandBits-1)
}

// scores returns the scores between which the members of a list are that are looked for. In a band there may be
// others at its edge.
func scores(q store.Query) (least, most string) {
	least, most = "-inf", "+inf"
	open := "("
	if slices.Contains(banded, q.Name) {
		least, most = strconv.FormatInt(scoreOf(q.List, 0), 10), strconv.FormatInt(scoreOf(q.List, 1<<bandBits), 10)
		open = ""
	}
	if !q.Since.IsZero() {
		least = strconv.FormatInt(scoreOf(q.List, placeAfter(q.Since)), 10)
	}
	if !q.Before.IsZero() {
		most = open + strconv.FormatInt(scoreOf(q.List, placeAfter(q.Before)), 10)
	}
	return least, most
}

// asks reports whether a member is one of those that are looked for, and not of another list in the same band.
func asks(q store.Query, member string) bool {
	_, own := bandOf(q.List)
	_, at, suffix := cutPlace(member)
	ms := at.UnixMilli()
	return suffix == own && (q.Since.IsZero() || ms >= placeAfter(q.Since)) &&
		(q.Before.IsZero() || ms < placeAfter(q.Before))
}

// lists are the keys of the sets that a list is divided into.
func (k keys) lists(l store.List) []string {
	if slices.Contains(banded, l.Name) {
		l.Name, l.Group = store.ListTenantRunning, ""
	}
	name := k.prefix + "list:{" + url.QueryEscape(l.Name) + "/" + url.QueryEscape(l.Tenant) + "/" +
		url.QueryEscape(l.Group)
	if (l.Tenant != "" || l.Group != "") && !slices.Contains(divided, l.Name) {
		return []string{name + "}"}
	}
	parts := make([]string, listParts)
	for i := range parts {
		parts[i] = name + "/" + strconv.Itoa(i) + "}"
	}
	return parts
}

// list is the key of the one of them that has the listings of that time.
func (k keys) list(l store.Listing) string {
	parts := k.lists(l.List)
	return parts[spanOf(l.At.UnixMilli())%uint64(len(parts))]
}

// asked are the keys of those that may have what is looked for.
func (k keys) asked(q store.Query) []string {
	parts := k.lists(q.List)
	if q.Since.IsZero() || q.Before.IsZero() {
		return parts
	}
	first, last := spanOf(placeAfter(q.Since)), spanOf(placeAfter(q.Before))
	if last-first >= uint64(len(parts))-1 {
		return parts
	}
	keys := make([]string, last-first+1)
	for i := range keys {
		keys[i] = parts[(first+uint64(i))%uint64(len(parts))]
	}
	return keys
}

// spanOf numbers the spans of time, so that later ones have larger numbers, before 1970 too.
func spanOf(ms int64) uint64 {
	if ms < 0 {
		ms -= partSpan - 1
	}
	return uint64(ms/partSpan) ^ 1<<63
}

// placeAfter is the first place in a list, in ms, that is not before a time.
func placeAfter(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// days has the days for which there is a list of the tenant's threads. The braces are never empty.
func (k keys) days(tenant string) string { return k.prefix + "days:{" + url.QueryEscape(tenant) + "/}" }

// day has the tenant's threads that were last active on a day.
func (k keys) day(tenant string, day int64) string {
	return k.prefix + "day:{" + url.QueryEscape(tenant) + "/" + strconv.FormatInt(day, 10) + "}"
}

// progress is how far the walk has come that fills the index.
func (k keys) progress() string { return k.prefix + "index" }

// dayOf counts days since 1970.
func dayOf(minute int64) int64 {
	const minutes = 24 * 60
	if minute < 0 {
		minute -= minutes - 1
	}
	return minute / minutes
}

// listingMember is the member of a list for a thread: the thread, its place and, if other lists are in the
// same set, which list it is.
func listingMember(tag string, l store.Listing) redis.Z {
	ms := l.At.UnixMilli()
	member := tag + " " + strconv.FormatInt(ms, 36)
	if _, suffix := bandOf(l.List); suffix != "" {
		member += " " + suffix
	}
	return redis.Z{Score: float64(scoreOf(l.List, ms)), Member: member}
}

// cutPlace is the reverse; for a member that is none of ours it returns no tag.
func cutPlace(member string) (tag string, at time.Time, suffix string) {
	tag, place, _ := strings.Cut(member, " ")
	place, suffix, _ = strings.Cut(place, " ")
	ms, err := strconv.ParseInt(place, 36, 64)
	if err != nil {
		return "", time.Time{}, ""
	}
	return tag, time.UnixMilli(ms).UTC(), suffix
}

// relisting is what a commit changes of the lists that its thread is in.
type relisting struct {
	is []store.Listing // afterwards; nil if nothing changes
	// added are new, and gone were there before, as far as this process knows.
	added, gone []store.Listing
	// unknown means that another process, or this one before it was restarted, has listed the thread
	// last; was is then what Redis says that the lists were.
	unknown bool
	was     *redis.SliceCmd
}

// unlisted is what most commits change of the lists: nothing.
var unlisted = &relisting{}

// relists returns what the commit changes, if it builds on the head that has that hint.
func relists(c *store.Commit, has *hint) *relisting {
	if c.Listings == nil {
		return unlisted
	}
	is := listingsOf(c)
	var was []store.Listing
	if has.etag == c.Expect.ETag {
		if was = has.listings; was != nil && slices.Equal(was, is) {
			return unlisted
		}
	}
	r := &relisting{is: is, unknown: was == nil && c.Expect.ETag != ""}
	for _, l := range is {
		if !slices.Contains(was, l) {
			r.added = append(r.added, l)
		}
	}
	for _, l := range was {
		if !slices.Contains(is, l) {
			r.gone = append(r.gone, l)
		}
	}
	return r
}

// add writes the new members, and asks for what it does not know.
func (r *relisting) add(ctx context.Context, pipe redis.Pipeliner, k keys, tag string) (cmds []redis.Cmder) {
	if r.unknown {
		r.was = pipe.HMGet(ctx, k.thread(tag), fieldListings)
	}
	for _, set := range k.bySet(r.added, tag) {
		cmds = append(cmds, pipe.ZAdd(ctx, set.key, set.members...))
	}
	return cmds
}

// setOf is what a commit changes of one set.
type setOf struct {
	key     string
	members []redis.Z
}

// bySet returns the members of listings by the sets that they are in.
func (k keys) bySet(listings []store.Listing, tag string) (sets []setOf) {
	for _, l := range listings {
		key := k.list(l)
		at := slices.IndexFunc(sets, func(s setOf) bool { return s.key == key })
		if at < 0 {
			at, sets = len(sets), append(sets, setOf{key: key})
		}
		sets[at].members = append(sets[at].members, listingMember(tag, l))
	}
	return sets
}

// remove removes the others.
func (r *relisting) remove(ctx context.Context, pipe redis.Pipeliner, k keys, tag string) {
	for _, set := range k.bySet(r.gone, tag) {
		names := make([]any, len(set.members))
		for i := range set.members {
			names[i] = set.members[i].Member
		}
		pipe.ZRem(ctx, set.key, names...)
	}
}

// learn takes in which lists the thread was in. The commit has shown that it is the next one after
// what Redis said, or the same.
func (r *relisting) learn(key store.ThreadKey, v *values) {
	if r.was == nil || len(r.was.Val()) == 0 {
		return
	}
	framed, there := r.was.Val()[0].(string)
	if !there {
		return
	}
	raw, err := v.decode(key, "", listingsName, framed)
	if err != nil {
		return // readers of the lists find what is wrong
	}
	was, _ := decodeListings(raw)
	for _, l := range was {
		if !slices.Contains(r.is, l) {
			r.gone = append(r.gone, l)
		}
	}
}
