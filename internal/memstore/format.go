package memstore

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

var _ store.FormatKeeper = (*Store)(nil)

// AgreeFormat implements [store.FormatKeeper].
func (s *Store) AgreeFormat(ctx context.Context, process string, terms store.FormatTerms) (store.Formats, error) {
	if err := ctx.Err(); err != nil {
		return store.Formats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.format = max(s.format, terms.Knows); s.format == 0 {
		s.format = terms.Reads
	}
	s.reads[process] = terms.Reads
	if terms.Reads < s.format {
		return store.Formats{
				Write: s.format,
			}, &store.VersionError{
				What:   "the store",
				Stored: s.format,
				Known:  terms.Reads,
			}
	}
	behind := map[string]int{}
	for process, reads := range s.readers() {
		if reads < terms.Wants {
			behind[process] = reads
		}
	}
	switch {
	case terms.Wants <= s.format:
		return store.Formats{Write: s.format}, nil
	case len(behind) == 0:
		s.format = terms.Wants
	}
	return store.Formats{Write: s.format, Reads: behind}, nil
}

// readers returns what the processes that live read. The caller holds the lock.
func (s *Store) readers() map[string]int {
	reads := map[string]int{}
	for process, l := range s.leases {
		if l.Until.After(time.Now()) {
			reads[process] = s.reads[process]
		}
	}
	return reads
}

// Formats implements [store.FormatKeeper].
func (s *Store) Formats(ctx context.Context) (store.Formats, error) {
	if err := ctx.Err(); err != nil {
		return store.Formats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Formats{Write: s.format, Reads: s.readers()}, nil
}
