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
	_, known := s.leases[process]
	others := len(s.leases) > 1 || len(s.leases) == 1 && !known
	switch s.format = max(s.format, terms.Knows); {
	case s.format > 0:
	case others:
		s.format = terms.Silent
	default:
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
	for process, reads := range s.readers(terms.Silent) {
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
func (s *Store) readers(silent int) map[string]int {
	reads := map[string]int{}
	for process, l := range s.leases {
		if l.Until.After(time.Now()) {
			reads[process] = silent
			if says, known := s.reads[process]; known {
				reads[process] = says
			}
		}
	}
	return reads
}

// Formats implements [store.FormatKeeper].
func (s *Store) Formats(ctx context.Context, silent int) (store.Formats, error) {
	if err := ctx.Err(); err != nil {
		return store.Formats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Formats{Write: s.format, Reads: s.readers(silent)}, nil
}
