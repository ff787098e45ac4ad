// Package prompt measures how much of a request to a model was in the one before: so much
// of it the provider can read from its cache instead of working through it again.
//
// The client of a provider says what it sends ([Report]), and where its parts end. The run
// follows that ([Follow]) with the mark of the request before, which is stored with the
// thread, so that the first request after a takeover is measured like any other. A mark
// has checksums and a length, and none of the prompt's text. Measuring reads the bytes
// once, just before they are sent.
package prompt

import (
	"context"
	"hash/crc32"
	"sync"
)

// Part is a part of a prompt. A request has them in this order, so that what changes least
// stands first.
type Part int

// The parts.
const (
	// Settings are the model and the parameters of the request.
	Settings Part = iota
	// Tools are the tools with their schemas.
	Tools
	// Instructions are the system texts.
	Instructions
	// Messages are the conversation, without what may be different in the next request.
	Messages
	// Parts is how many there are.
	Parts
)

// Body is the body of a request, and what in it the next request may repeat.
type Body struct {
	// Provider and Model are who is asked.
	Provider, Model string
	// Bytes is the whole body.
	Bytes []byte
	// Ends has where each part ends. The part after the last one is not measured.
	Ends [Parts]int
	// Without has pieces of Bytes, in order, that are no part of the prompt: marks for
	// the provider's cache, which move from request to request.
	Without [][2]int
}

// Sent is a request that was measured.
type Sent struct {
	// Provider and Model are who was asked.
	Provider, Model string
	// Size is how long the prompt was, in bytes, and Repeated how much of its beginning
	// was in the request before. If only a part of the earlier messages was repeated, none
	// of them counts.
	Size, Repeated int
	// Kept is the first part that did not begin as before; Parts if the whole request
	// before was repeated.
	Kept Part
	// First means that there was no request before.
	First bool
	// Branched means that the history had branched, or gone back, since then.
	Branched bool
	// Fewer means that the model was shown fewer messages than the history has, and Cut is
	// why a hook says that it was shown less than before.
	Fewer bool
	Cut   string
	// Mark is what the next request is compared with.
	Mark *Mark
}

// Tracker measures the requests that are made within a context.
type Tracker struct {
	before *Mark
	given  int

	mu    sync.Mutex
	shown int
	cut   string
	last  *Sent
}

type trackerKey struct{}

// Follow returns a context whose requests are measured against the mark of the one before,
// nil if there was none. messages is how many messages the history has.
func Follow(ctx context.Context, before *Mark, messages int) (context.Context, *Tracker) {
	t := &Tracker{before: before, given: messages, shown: messages}
	return context.WithValue(ctx, trackerKey{}, t), t
}

// Last returns the last request; nil if none was reported. A call of the model may make
// several: of a summary before that of the answer, for example.
func (t *Tracker) Last() *Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Shown says how many of the history's messages the next request has, and why a hook says
// that it is shown less than before.
func Shown(ctx context.Context, messages int, cut string) {
	if t, ok := ctx.Value(trackerKey{}).(*Tracker); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.shown, t.cut = messages, cut
	}
}

// Report says that a request is about to be sent. It reads b, and keeps nothing of it.
func Report(ctx context.Context, b *Body) {
	t, ok := ctx.Value(trackerKey{}).(*Tracker)
	if !ok {
		return
	}
	sent := compare(t.before, b)
	t.mu.Lock()
	defer t.mu.Unlock()
	sent.Fewer, sent.Cut = t.shown < t.given, t.cut
	t.last = sent
}

// compare measures a request against the mark of the one before.
func compare(before *Mark, b *Body) *Sent {
	s := &sums{body: b}
	if before.known() {
		s.stop = int(before.size)
	}
	s.sum = crc32.Update(0, castagnoli, []byte(b.Provider+"/"+b.Model+"\n"))
	mark, sizes := &Mark{}, [Parts]int{}
	for p := range Parts {
		s.advance(b.Ends[p])
		mark.sums[p], sizes[p] = s.sum, s.size
	}
	mark.size = uint64(s.size)
	sent := &Sent{
		Provider: b.Provider,
		Model:    b.Model,
		Size:     s.size,
		First:    !before.known(),
		Mark:     mark,
	}
	if sent.First {
		return sent
	}
	sent.Branched = before.branched
	for sent.Kept < Messages && mark.sums[sent.Kept] == before.sums[sent.Kept] {
		sent.Repeated = sizes[sent.Kept]
		sent.Kept++
	}
	if sent.Kept == Messages && s.passed && s.atStop == before.sums[Messages] {
		sent.Repeated, sent.Kept = int(before.size), Parts
	}
	return sent
}

// castagnoli is a checksum that processors compute by themselves. It is no secret hash: a
// mark is stored beside the messages that it is made of.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums is the checksum of a body up to where it was read.
type sums struct {
	body *Body
	at   int // in the body
	hole int // the next piece that is left out
	size int // of what was read
	sum  uint32
	// stop is the length at which the sum is noted down, if it is passed.
	stop   int
	passed bool
	atStop uint32
}

// advance reads up to a place in the body.
func (s *sums) advance(to int) {
	for ; s.hole < len(s.body.Without) && s.body.Without[s.hole][0] < to; s.hole++ {
		hole := s.body.Without[s.hole]
		s.take(s.body.Bytes[s.at:hole[0]])
		s.at = hole[1]
	}
	if s.at < to {
		s.take(s.body.Bytes[s.at:to])
		s.at = to
	}
}

func (s *sums) take(piece []byte) {
	if left := s.stop - s.size; !s.passed && left <= len(piece) {
		s.atStop, s.passed = crc32.Update(s.sum, castagnoli, piece[:left]), true
		s.sum, piece, s.size = s.atStop, piece[left:], s.stop
	}
	s.sum = crc32.Update(s.sum, castagnoli, piece)
	s.size += len(piece)
}
