package redisstore

import (
	"context"
	"encoding/binary"
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
	// listParts is how many sets a list of all tenants is divided into, and partSpan how much time
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

// lists are the keys of the sets that a list is divided into.
func (k keys) lists(l store.List) []string {
	name := k.prefix + "list:{" + url.QueryEscape(l.Name) + "/" + url.QueryEscape(l.Tenant) + "/" +
		url.QueryEscape(l.Group)
	if l.Tenant != "" || l.Group != "" {
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

// listingMember is the member of a list for a thread: the thread, and its place.
func listingMember(tag string, l store.Listing) redis.Z {
	ms := l.At.UnixMilli()
	return redis.Z{Score: float64(ms), Member: tag + " " + strconv.FormatInt(ms, 36)}
}

// cutPlace is the reverse; for a member that is none of ours it returns no tag.
func cutPlace(member string) (tag string, at time.Time) {
	tag, place, _ := strings.Cut(member, " ")
	ms, err := strconv.ParseInt(place, 36, 64)
	if err != nil {
		return "", time.Time{}
	}
	return tag, time.UnixMilli(ms).UTC()
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

// relists returns what the commit changes, if it builds on the head that has that hint.
func relists(c *store.Commit, has *hint) (r relisting) {
	if c.Listings == nil {
		return r
	}
	is := listingsOf(c)
	var was []store.Listing
	if has.etag == c.Expect.ETag {
		if was = has.listings; was != nil && slices.Equal(was, is) {
			return r
		}
	}
	r.is, r.unknown = is, was == nil && c.Expect.ETag != ""
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
	for _, l := range r.added {
		cmds = append(cmds, pipe.ZAdd(ctx, k.list(l), listingMember(tag, l)))
	}
	return cmds
}

// remove removes the others.
func (r *relisting) remove(ctx context.Context, pipe redis.Pipeliner, k keys, tag string) {
	for _, l := range r.gone {
		pipe.ZRem(ctx, k.list(l), listingMember(tag, l).Member)
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
