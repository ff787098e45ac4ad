// Package dataformat agrees with the other processes that have a store open on the format of
// what they write in it (see thread.Format). A process of the version before reads only the
// format before, so that one is written until an operator asks for the newer one, and until
// then every process can be replaced by one of the version before.
package dataformat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Newest is the setting that asks for the newest format that this version knows.
const Newest = "newest"

// Parse reads the setting: the number of a format, "newest", or "" for none, which is 0.
func Parse(setting string) (int, error) {
	switch n, err := strconv.Atoi(setting); {
	case setting == "":
		return 0, nil
	case setting == Newest:
		return thread.Format, nil
	case err == nil && n >= thread.FormatBefore && n <= thread.Format:
		return n, nil
	}
	return 0, fmt.Errorf("the data format %q cannot be written by this version: use %s or %s", setting, written(),
		Newest)
}

// written names the formats that this version writes.
func written() string {
	if thread.FormatBefore == thread.Format {
		return strconv.Itoa(thread.Format)
	}
	return fmt.Sprintf("%d to %d", thread.FormatBefore, thread.Format)
}

// Agreement is what a process has agreed upon with the others. All its methods may be called
// concurrently.
type Agreement struct {
	keeper store.FormatKeeper // nil if the store keeps no format
	alone  bool
	// reads is the newest format that this version reads and writes, and before the one of
	// the version before.
	reads, before int
	wants         int
	log           *slog.Logger
	agreed        func(Status)

	mu     sync.Mutex
	write  int // 0 before the first time
	behind map[string]int
	newer  error // the store's format is newer than this process reads
}

// New returns the agreement of a process that asks for a format; 0 for none. alone means that
// no other process can have the store open. agreed, which may be nil, is told of each
// agreement.
func New(s store.Store, alone bool, wants int, log *slog.Logger, agreed func(Status)) *Agreement {
	keeper, _ := s.(store.FormatKeeper)
	if agreed == nil {
		agreed = func(Status) {}
	}
	return &Agreement{
		keeper: keeper,
		alone:  alone,
		reads:  thread.Format,
		before: thread.FormatBefore,
		wants:  wants,
		log:    log,
		agreed: agreed,
	}
}

// Agree is called after each time that the process was announced. Its error wraps
// [store.ErrVersionTooNew] if this process must not write.
func (a *Agreement) Agree(ctx context.Context, process string) error {
	err := a.agree(ctx, process)
	if err == nil {
		a.agreed(a.Status())
	}
	return err
}

func (a *Agreement) agree(ctx context.Context, process string) error {
	if a.keeper == nil {
		return nil
	}
	a.mu.Lock()
	terms := store.FormatTerms{Reads: a.reads, Wants: a.wants, Knows: a.write}
	a.mu.Unlock()
	got, err := a.keeper.AgreeFormat(ctx, process, terms)
	newer := errors.Is(err, store.ErrVersionTooNew)
	if err != nil && !newer {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell(got, newer)
	a.behind, a.newer = got.Reads, nil
	if newer {
		a.newer = fmt.Errorf("other servers write data of format %d into this store, and this version reads up to "+
			"%d: start a newer version: %w", got.Write, a.reads, err)
		return a.newer
	}
	a.write = got.Write
	return nil
}

// tell says in the log what has changed. The caller holds mu.
func (a *Agreement) tell(got store.Formats, newer bool) {
	switch {
	case newer && a.newer == nil && a.write > 0:
		a.log.Error("other servers write a newer data format than this one reads; replace it by a newer version",
			"format", got.Write, "reads", a.reads)
	case newer:
	case a.write == 0 && got.Write < a.reads && a.wants <= got.Write:
		a.log.Info("this server writes the data format that the version before reads; once no server of that version "+
			"is left, ask for the newer one with --data-format",
			"format", got.Write, "reads", a.reads)
	case a.write > 0 && got.Write > a.write:
		a.log.Info("this server writes a newer data format from now on", "format", got.Write, "before", a.write)
	}
	if len(got.Reads) > 0 && !maps.Equal(got.Reads, a.behind) {
		a.log.Warn("the step to the newer data format waits for servers that do not read it",
			"format", got.Write, "wanted", a.wants, "servers", Servers(got.Reads))
	}
}

// Write returns the format that new data is written in. If there may be others, which cannot
// be asked, a person who asks for a format has to know that they read it.
func (a *Agreement) Write() int {
	switch {
	case a.alone:
		return a.reads
	case a.keeper == nil:
		return max(a.wants, a.before)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.write, a.before)
}

// Err returns why this process must not write; nil if it may.
func (a *Agreement) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newer
}

// Status is what has been agreed upon.
type Status struct {
	// Alone means that no other process can have the store open.
	Alone bool
	// Write is the format that new data is written in, and Reads the newest that this
	// process reads.
	Write, Reads int
	// Wants is the format that this process asks for; 0 for none.
	Wants int
	// Behind are the processes that hold that one back, with what they read.
	Behind map[string]int
}

// Status returns what was agreed upon the last time.
func (a *Agreement) Status() Status {
	s := Status{Alone: a.alone, Write: a.Write(), Reads: a.reads, Wants: a.wants}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Behind = a.behind
	return s
}

// String describes it in one line.
func (s Status) String() string {
	switch {
	case s.Write >= s.Reads:
		return fmt.Sprintf("format %d", s.Write)
	case len(s.Behind) > 0:
		return fmt.Sprintf("format %d; format %d is held back by servers that do not read it: %s", s.Write, s.Wants,
			Servers(s.Behind))
	default:
		return fmt.Sprintf("format %d, which the version before reads; --data-format=%d asks for the newer one, once "+
			"every server has this version", s.Write, s.Reads)
	}
}

// Servers lists processes with what they read.
func Servers(reads map[string]int) string {
	list := make([]string, 0, len(reads))
	for _, process := range slices.Sorted(maps.Keys(reads)) {
		what := fmt.Sprintf("reads %d", reads[process])
		if reads[process] == 0 {
			what = "has not said yet what it reads"
		}
		list = append(list, fmt.Sprintf("%s (%s)", process, what))
	}
	return strings.Join(list, ", ")
}

// Of returns the format that servers write into a store, and what the living ones read; a
// store that keeps none has this version's.
func Of(ctx context.Context, s store.Store) (store.Formats, error) {
	keeper, can := s.(store.FormatKeeper)
	if !can {
		return store.Formats{Write: thread.Format}, nil
	}
	return keeper.Formats(ctx)
}
