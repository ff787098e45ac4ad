package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// How a head, a log entry and a value are written, and how they are read back. The
// scripts compare positions byte by byte, so the encoding of a head has one form; what
// is written here is in users' stores and stays readable.

// layout is the version of a thread's layout, which is stored with each thread; see keys. A
// thread with a higher one is refused.
const layout = 1

var layoutText = strconv.Itoa(layout)

// tooNew is the error for a thread that a newer version has laid out.
func tooNew(key store.ThreadKey, stored int) error {
	return &store.VersionError{What: "the layout of thread " + key.String(), Stored: stored, Known: layout}
}

// values encodes and decodes.
type values struct {
	codec, earlier *frame.Codec
	written        *written
}

// writer returns the codec for what this process writes: a process that reads only format 1 knows no
// common letters.
func (s *values) writer() *frame.Codec {
	if s.written.newest() {
		return s.codec
	}
	return s.earlier
}

// appendPosition writes the position that a commit expects. A head begins with its
// position, so one comparison of bytes compares all of it.
func appendPosition(b []byte, p store.Position) []byte {
	b = appendFence(appendText(b, p.ETag), p.Fence)
	b = strconv.AppendUint(b, p.Next, 10)
	return append(b, ';')
}

// appendFence writes a fence: the nonce, then the epoch.
func appendFence(b []byte, f store.Fence) []byte {
	b = appendText(b, f.Nonce)
	return append(strconv.AppendUint(b, f.Epoch, 10), ',')
}

// appendHead writes the head after a commit: its position, user, process and time, and
// the checksum of all that. The time is in seconds since 1970 and nanoseconds, which can
// represent any time.
func appendHead(b []byte, c *store.Commit, next uint64) []byte {
	b = appendPosition(b, store.Position{ETag: c.ID, Fence: c.Fence, Next: next})
	b = appendText(b, c.User)
	b = appendText(b, c.Process)
	b = strconv.AppendInt(b, c.UpdatedAt.Unix(), 10)
	b = strconv.AppendInt(append(b, '.'), int64(c.UpdatedAt.Nanosecond()), 10)
	return appendSum(append(b, ';'), frame.Sum(b))
}

// appendSum writes a checksum as eight hexadecimal digits.
func appendSum(b []byte, sum uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[sum>>shift&15])
	}
	return b
}

// checkedHead returns the head before its checksum, and reports whether it is the one
// that was written.
func checkedHead(text string) (string, bool) {
	at := len(text) - len(";01234567")
	if at < 0 {
		return text, false
	}
	return text[:at], text[at:] == string(appendSum([]byte{';'}, frame.Sum([]byte(text[:at]))))
}

// decodeHead reads a head from the fields f and h of its thread. If it cannot be read, the
// error wraps ErrUnreadable or ErrVersionTooNew.
func decodeHead(key store.ThreadKey, fields []any) (*store.Head, error) {
	stored, _ := fields[0].(string)
	text, exists := fields[1].(string)
	if !exists {
		return nil, notFound(key)
	}
	if n, err := strconv.Atoi(stored); err != nil || n < 1 {
		return nil, fmt.Errorf("thread %s has the layout %q: %w", key, stored, errDamaged)
	} else if n > layout {
		return nil, tooNew(key, n)
	}
	h, ok := parseHead(text)
	if !ok {
		return nil, fmt.Errorf("the head of thread %s: %w", key, errDamaged)
	}
	h.Key = key
	return h, nil
}

// ownedBy returns what is known of a thread whose head cannot be read, from its field u;
// nil if that is nothing.
func ownedBy(key store.ThreadKey, user any) *store.Head {
	name, known := user.(string)
	if !known {
		return nil
	}
	return &store.Head{Key: key, User: name}
}

// parseHead is the reverse of appendHead.
func parseHead(text string) (*store.Head, bool) {
	h := &store.Head{}
	text, ok := checkedHead(text)
	name := func() string {
		number, rest, found := strings.Cut(text, ":")
		n, err := strconv.Atoi(number)
		if ok = ok && found && err == nil && n >= 0 && n <= len(rest); !ok {
			return ""
		}
		text = rest[n:]
		return rest[:n]
	}
	until := func(end string) string {
		number, rest, found := strings.Cut(text, end)
		ok = ok && found
		text = rest
		return number
	}
	h.ETag, h.Fence.Nonce = name(), name()
	epoch, err1 := strconv.ParseUint(until(","), 10, 64)
	next, err2 := strconv.ParseUint(until(";"), 10, 64)
	h.User, h.Process = name(), name()
	seconds, err3 := strconv.ParseInt(until("."), 10, 64)
	nanos, err4 := strconv.ParseInt(text, 10, 64)
	h.Fence.Epoch, h.Next, h.UpdatedAt = epoch, next, time.Unix(seconds, nanos).UTC()
	return h, ok && errors.Join(err1, err2, err3, err4) == nil
}

// commitOf returns the id of the commit in a head as it is stored; false if it cannot be read.
func commitOf(head string) (string, bool) {
	h, ok := parseHead(head)
	return h.ETag, ok
}

// appendText writes a text, preceded by its length in decimal.
func appendText(b []byte, text string) []byte {
	b = strconv.AppendInt(b, int64(len(text)), 10)
	return append(append(b, ':'), text...)
}

// encode makes the frame of a value.
func (s *values) encode(own []byte, name string, data []byte) []byte {
	return s.writer().EncodeOwn(own, name, data)
}

// worthEntry is the size in bytes from which an entry is worth the time that phrases take:
// most are of one word, and somebody waits for it.
const worthEntry = 160

// decodeMessage returns the message in a field of the thread's hash, and its place in
// commit order. room is memory that is used again for the next one.
func (s *values) decodeMessage(
	key store.ThreadKey, id, value string, room *[]byte,
) (m store.Message, place int, err error) {
	number, rest, _ := strings.Cut(value, ":")
	place, err = strconv.Atoi(number)
	parent, framed, ok := cutName(rest)
	if err != nil || !ok {
		return m, 0, fmt.Errorf("message %q of thread %s: %w", id, key, errDamaged)
	}
	*room = append((*room)[:0], rest...)
	own := len(rest) - len(framed)
	data, err := s.codec.Decode((*room)[:own], id, (*room)[own:])
	if err != nil {
		data, err = s.decode(key, rest[:own], id, framed) // which says what is wrong
	}
	return store.Message{ID: id, Parent: parent, Data: data}, place, err
}

// encodeEntry makes one log entry of a commit's records: the tag, then one frame with
// all records, each preceded by its length. Together they compress better, and they
// are read together.
func (s *values) encodeEntry(c *store.Commit) []byte {
	if len(c.Records) == 0 {
		return nil
	}
	size := 0
	for _, r := range c.Records {
		size += binary.MaxVarintLen32 + len(r)
	}
	body := make([]byte, 0, size)
	for _, r := range c.Records {
		body = append(binary.AppendUvarint(body, uint64(len(r))), r...)
	}
	tag := c.Fence.Tag()
	number := strconv.FormatUint(c.Expect.Next+uint64(len(c.Records))-1, 10)
	own := appendName(make([]byte, 0, len(tag)+len(body)+16), tag)
	if len(body) < worthEntry {
		return s.writer().Encode(own, number, body)
	}
	return s.encode(own, number, body)
}

// decodeEntry returns the records of an entry of the stream, at least one: those of one
// commit, or of two.
func (s *values) decodeEntry(key store.ThreadKey, entry *redis.XMessage) (records []store.Record, err error) {
	value, _ := entry.Values[""].(string)
	if first, two := entry.Values["e"].(string); two {
		if records, err = s.decodeCommit(key, first); err != nil {
			return nil, err
		}
		value, _ = entry.Values["f"].(string)
	}
	number, _, _ := strings.Cut(entry.ID, "-")
	second, err := s.decodeCommit(key, number+":"+value)
	return append(records, second...), err
}

// decodeCommit is the reverse of encodeEntry; the number of the last record stands before it,
// with a colon between. It returns at least one record.
func (s *values) decodeCommit(key store.ThreadKey, text string) ([]store.Record, error) {
	number, value, _ := strings.Cut(text, ":")
	last, err := strconv.ParseUint(number, 10, 64)
	tag, framed, ok := cutName(value)
	if err != nil || !ok {
		return nil, fmt.Errorf("log entry %s of thread %s: %w", number, key, errDamaged)
	}
	body, err := s.decode(key, value[:len(value)-len(framed)], number, framed)
	if err != nil {
		return nil, err
	}
	var records []store.Record
	for len(body) > 0 {
		n, size := binary.Uvarint(body)
		if size <= 0 || n > uint64(len(body)-size) {
			return nil, fmt.Errorf("log entry %s of thread %s: %w", number, key, errDamaged)
		}
		end := size + int(n)
		records = append(records, store.Record{Cursor: store.Cursor{Tag: tag}, Data: body[size:end:end]})
		body = body[end:]
	}
	if len(records) == 0 || uint64(len(records)) > last {
		return nil, fmt.Errorf("log entry %s of thread %s: %w", number, key, errDamaged)
	}
	for i := range records {
		records[i].Number = last - uint64(len(records)-1-i)
	}
	return records, nil
}

// appendName writes a name, preceded by its length as a varint.
func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// cutName is the reverse of appendName; rest is what follows the name.
func cutName(s string) (name, rest string, ok bool) {
	n, size := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
	if size <= 0 || n > uint64(len(s)-size) {
		return "", "", false
	}
	return s[size : size+int(n)], s[size+int(n):], true
}

// The names that go into the checksums of frames: a reader that finds a frame under another
// one finds damage.
const stateName = "state"

func valueName(kind store.Kind, id string) string { return string(kind) + "/" + id }

// decode returns the data in a frame that stands behind own in the value of this name. If the
// length of own is damaged, the frame may look like one of a newer version.
func (s *values) decode(key store.ThreadKey, own, name, framed string) ([]byte, error) {
	data, err := s.codec.Decode([]byte(own), name, []byte(framed))
	if errors.Is(err, store.ErrVersionTooNew) && misplaced(s.codec, own, name, framed) {
		err = errDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("thread %s: %w", key, err)
	}
	return data, nil
}

// misplaced reports whether the frame would be a whole one if a bit of the length with
// which own begins had not flipped.
func misplaced(codec *frame.Codec, own, name, framed string) bool {
	if own == "" {
		return false
	}
	value := []byte(own + framed)
	for bit := range 8 * min(2, len(value)) {
		value[bit/8] ^= 1 << (bit % 8)
		if _, rest, ok := cutName(string(value)); ok {
			if _, err := codec.Decode(value[:len(value)-len(rest)], name, []byte(rest)); err == nil {
				return true
			}
		}
		value[bit/8] ^= 1 << (bit % 8)
	}
	return false
}
