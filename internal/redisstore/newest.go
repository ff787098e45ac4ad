package redisstore

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"
)

// Values in the thread's hash, where a commit writes them in one command with the head: the
// newest entry of the log, the intents, and the newest checkpoints. The scripts move what
// becomes too much to keys of its own, so readers look at both places. The hash decides.

const (
	// maxIntents is the size in bytes from which new intents go to their own hash at once.
	maxIntents = 16 << 10
	// maxRecent is how many checkpoints are in the thread's hash at most; commit.lua has it,
	// too. Those of more than largeCheckpoint bytes go to their own hash at once.
	maxRecent       = 16
	largeCheckpoint = 4 << 10
)

// newest says what of a commit goes into the thread's hash.
type newest struct{ intents, checkpoint bool }

func (n newest) has(k store.Kind) bool {
	return n.intents && k == store.KindIntent || n.checkpoint && k == store.KindCheckpoint
}

// newestOf returns it: intents if they are not large, and a checkpoint if there is one, it is
// not large, and nothing else is done to checkpoints but to keep some.
func newestOf(c *store.Commit) newest {
	size, checkpoints, large := 0, 0, false
	for i := range c.Put {
		switch v := &c.Put[i]; v.Kind {
		case store.KindIntent:
			size += len(v.ID) + len(v.Data) + 16
		case store.KindCheckpoint:
			checkpoints++
			large = large || len(v.Data) > largeCheckpoint
		}
	}
	keep, keeps := c.Keep[store.KindCheckpoint]
	_, ofIntents := c.Keep[store.KindIntent]
	others := keeps && keep < 1 || slices.Contains(c.Clear, store.KindCheckpoint) ||
		slices.ContainsFunc(c.Delete, func(v store.ValueID) bool { return v.Kind == store.KindCheckpoint })
	return newest{intents: size <= maxIntents && !ofIntents, checkpoint: checkpoints == 1 && !large && !others}
}

// intentsIn returns the intents in the field n, by id. A value that does not look like a frame
// has the wrong place, because a length is damaged.
func intentsIn(text string) (map[string]string, error) {
	found := map[string]string{}
	for text != "" {
		id, rest, ok1 := cutName(text)
		framed, rest, ok2 := cutName(rest)
		if !ok1 || !ok2 || !frame.Summed([]byte(framed)) {
			return nil, errDamaged
		}
		found[id] = framed
		text = rest
	}
	return found, nil
}

// recent is what the thread's hash says of checkpoints.
type recent struct {
	framed map[string]string // by id, those in the thread's hash
	listed int               // how many are in the history
	hidden int               // how many of those, the oldest, are more than are kept
}

// recentFields are the fields that parseRecent reads.
var recentFields = func() []string {
	fields := []string{"c", "x"}
	for n := range maxRecent {
		fields = append(fields, "x"+strconv.Itoa(n))
	}
	return fields
}()

// parseRecent reads the fields of a thread, in that order.
func parseRecent(values []any) (recent, error) {
	r := recent{framed: map[string]string{}}
	count, _ := values[0].(string)
	text, there := values[1].(string)
	r.listed, _ = strconv.Atoi(count)
	if !there {
		return r, nil
	}
	number, rest, ok1 := strings.Cut(text, ":")
	keeps, _, ok2 := strings.Cut(rest, ":")
	n, err1 := strconv.Atoi(number)
	keep, err2 := strconv.Atoi(keeps)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || n < 0 || n > maxRecent {
		return r, errDamaged
	}
	first := 0
	if keep > 0 {
		r.hidden, first = min(max(r.listed+n-keep, 0), r.listed), max(n-keep, 0)
	}
	for _, v := range values[2+first : 2+n] {
		slot, _ := v.(string)
		id, framed, ok := cutName(slot)
		if !ok || !frame.Summed([]byte(framed)) || r.framed[id] != "" {
			return r, errDamaged
		}
		r.framed[id] = framed
	}
	return r, nil
}

// newestFields returns the fields of a thread's hash with values of the kind.
func newestFields(kind store.Kind) []string {
	switch kind {
	case store.KindIntent:
		return []string{"n"}
	case store.KindCheckpoint:
		return recentFields
	}
	return nil
}

// parseNewest reads them: the values by id, and how many of the oldest are too much.
func parseNewest(kind store.Kind, fields []any) (found map[string]string, hidden int, err error) {
	switch kind {
	case store.KindIntent:
		text, _ := fields[0].(string)
		found, err = intentsIn(text)
	case store.KindCheckpoint:
		var r recent
		r, err = parseRecent(fields)
		found, hidden = r.framed, r.hidden
	}
	return found, hidden, err
}

// sizeOf returns what the field of a thread's hash counts as, besides messages.
func sizeOf(field string) string {
	switch {
	case field == "e":
		return store.SizeRecords
	case field == "n":
		return string(store.KindIntent)
	case len(field) > 1 && field[0] == 'x':
		return string(store.KindCheckpoint)
	}
	return ""
}

// newestEntry is the field e of a thread: the newest entry of the log.
type newestEntry struct {
	records []store.Record
	// before is the cursor of the record before the entry; its tag is empty if it is not known.
	before store.Cursor
}

// decodeNewest reads the field; the result is empty if there is none.
func (s *values) decodeNewest(key store.ThreadKey, field string) (n newestEntry, err error) {
	if field == "" {
		return n, nil
	}
	tag, rest, ok := cutName(field[1:])
	if !ok || field[0] != 'u' && field[0] != 's' {
		return n, errDamaged
	}
	if n.records, err = s.decodeCommit(key, rest); err != nil {
		return n, err
	}
	n.before = store.Cursor{Number: n.records[0].Number - 1, Tag: tag}
	return n, nil
}

// after returns up to limit records after the cursor; false if the entry is not enough to
// know them.
func (n *newestEntry) after(c store.Cursor, limit int) ([]store.Record, bool) {
	switch {
	case len(n.records) == 0 || c.Number < n.before.Number:
		return nil, false
	case c.Number == n.before.Number:
		return n.records[:min(limit, len(n.records))], c == n.before && (c.Tag != "" || c.Number == 0)
	}
	at := c.Number - n.records[0].Number
	if at >= uint64(len(n.records)) || n.records[at].Cursor != c {
		return nil, false
	}
	left := n.records[at+1:]
	return left[:min(limit, len(left))], true
}
