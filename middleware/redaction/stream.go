package redaction

import "unicode/utf8"

// maxHeld bounds what a stream holds back, in bytes. A secret may be longer than that;
// text that merely looks like the beginning of one is released.
const maxHeld = 8 << 10

// textStream hides secrets in a text that arrives in pieces. It holds back the end of the
// text while that may be the beginning of a secret, so the result does not depend on how
// the text is cut.
type textStream struct {
	hiding *hiding
	// seen is the last character that was released, followed by what is held back.
	seen string
	held int // index in seen of what is held back
	// again is how long seen must be before it is searched again, so that a long secret
	// is not searched at every piece.
	again int
}

// add takes a piece and returns what can be released.
func (s *textStream) add(piece string) string {
	s.seen += piece
	if piece == "" || len(s.seen) < s.again {
		return ""
	}
	end := wholeRunes(s.seen)
	matches := s.hiding.matches(s.seen[:end], s.held)
	keep := s.hiding.beginning(s.seen[:end], s.held, matches)
	out := s.release(keep, matches)
	s.again = len(s.seen) + (len(s.seen)-s.held)/8
	if len(s.seen)-s.held > maxHeld {
		return out + s.tooLong()
	}
	return out
}

// flush returns the rest of the text.
func (s *textStream) flush() string {
	return s.release(len(s.seen), s.hiding.matches(s.seen, s.held))
}

// release returns what precedes a position, without its secrets.
func (s *textStream) release(to int, matches []secretSpan) string {
	s.again = 0
	if to == s.held {
		return ""
	}
	var inside []secretSpan
	for _, m := range united(matches) {
		if m.to <= to {
			m.from, m.to = m.from-s.held, m.to-s.held
			inside = append(inside, m)
		}
	}
	out := s.hiding.replaced(s.seen[s.held:to], inside)
	_, last := utf8.DecodeLastRuneInString(s.seen[:to])
	s.seen, s.held = s.seen[to-last:], last
	return out
}

// tooLong releases text that was held back for too long, up to the beginning of a secret
// that may continue. If a secret spans all of it, only its middle is dropped, which
// nobody would see anyway.
func (s *textStream) tooLong() string {
	end := wholeRunes(s.seen)
	matches := s.hiding.matches(s.seen[:end], s.held)
	if keep := goingOn(end, matches); keep > s.held {
		return s.release(outside(keep, matches), matches)
	}
	head, tail := s.held+maxHeld/4, end-maxHeld/4
	for head < tail && !utf8.RuneStart(s.seen[head]) {
		head++
	}
	for tail < end && !utf8.RuneStart(s.seen[tail]) {
		tail++
	}
	shorter := s.seen[:head] + s.seen[tail:end]
	for _, m := range s.hiding.matches(shorter, s.held) {
		if m.name != "" && m.matchFrom == s.held && m.matchEnds == len(shorter) {
			s.seen = shorter + s.seen[end:]
			return ""
		}
	}
	return s.flush()
}

// beginning returns the position, at or after a given one, from which a text may be the
// beginning of a secret; the end of the text if there is none. It is never inside a
// match.
func (r *redactor) beginning(text string, after int, matches []secretSpan) int {
	keep := goingOn(len(text), matches)
	for i := range r.rules {
		if at := r.rules[i].tail.FindStringIndex(text); at != nil {
			keep = min(keep, at[0])
		}
	}
	return outside(max(keep, after), matches)
}

// goingOn returns the start of the first match that more text could extend.
func goingOn(end int, matches []secretSpan) int {
	keep := end
	for _, m := range matches {
		if m.matchEnds == end {
			keep = min(keep, m.matchFrom)
		}
	}
	return keep
}

// outside returns the last position, at or before a given one, that is not inside a
// match.
func outside(keep int, matches []secretSpan) int {
	for moved := true; moved; {
		moved = false
		for _, m := range matches {
			if m.matchFrom < keep && keep < m.matchEnds {
				keep, moved = m.matchFrom, true
			}
		}
	}
	return keep
}

// wholeRunes returns the length of a text without an incomplete character at its end.
func wholeRunes(text string) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}
