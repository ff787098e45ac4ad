package remote

import "hash/maphash"

// said is what a run has said so far, so that a snapshot does not say it again. Hashes of the texts are
// enough.
type said struct {
	seed maphash.Seed
	// texts are the hashes, by the messages.
	texts map[string]*maphash.Hash
	// sums count the texts of each hash, without the one of the message now, which may go on.
	sums map[uint64]int
	now  string
}

func newSaid() said {
	return said{seed: maphash.MakeSeed(), texts: map[string]*maphash.Hash{}, sums: map[uint64]int{}}
}

// add notes words of a message.
func (s *said) add(id, words string) {
	text := s.texts[id]
	if id != s.now {
		if before := s.texts[s.now]; before != nil {
			s.sums[before.Sum64()]++
		}
		if s.now = id; text != nil { // it goes on after another one
			s.sums[text.Sum64()]--
		}
	}
	if text == nil {
		text = &maphash.Hash{}
		text.SetSeed(s.seed)
		s.texts[id] = text
	}
	_, _ = text.WriteString(words) // it does not fail
}

// has reports whether the run has said the words of a message, under its id or another one.
func (s *said) has(id, words string) bool {
	if _, streamed := s.texts[id]; streamed || words == "" {
		return true
	}
	sum, now := maphash.String(s.seed, words), s.texts[s.now]
	return s.sums[sum] > 0 || now != nil && now.Sum64() == sum
}
