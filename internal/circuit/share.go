package circuit

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/store"
)

// The hints that processes give each other. A circuit that opens is written to the store as a
// hint, which ends with it, so that closing needs no write. Hints are read in the background
// while models are asked, at most once in a refresh; a process that asks no model reads
// nothing. A store that is away costs nobody anything: each process counts alone.

const (
	// Refresh is how often hints are read, at most.
	Refresh = time.Second
	// storeTimeout bounds each call of the store.
	storeTimeout = 2 * time.Second
	// hintPrefix is what the names of our hints begin with.
	hintPrefix = "circuit/"
)

// Start begins to share what the circuits find out, if there are hints or as soon as there
// are. The caller calls Close in the end.
func (c *Circuits) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.within, c.stop = context.WithCancel(context.Background())
	c.startSharing()
}

// startSharing starts what shares, if there is something to share and time for it. The caller
// holds mu.
func (c *Circuits) startSharing() {
	ctx, hints := c.within, c.hints
	if hints != nil && ctx != nil && ctx.Err() == nil {
		c.sharing.Go(func() { c.share(ctx, hints) })
	}
}

// Close ends what Start began, and waits for it.
func (c *Circuits) Close() {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.sharing.Wait()
}

// share tells others what is new at once, and listens while somebody asks.
func (c *Circuits) share(ctx context.Context, hints store.Hints) {
	asked := c.asked // nil while it is too soon to read again
	rest := time.NewTimer(0)
	defer rest.Stop()
	away := false
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
			asked = c.asked
			continue
		case <-c.told:
			err = c.tell(ctx, hints)
		case <-asked:
			asked = nil
			if err = c.tell(ctx, hints); err == nil { // what could not be told before
				err = c.listen(ctx, hints)
			}
			rest.Reset(Refresh)
		}
		if ctx.Err() == nil && away != (err != nil) {
			away = err != nil
			c.logAway(err)
		}
	}
}

func (c *Circuits) logAway(err error) {
	if err != nil {
		c.cfg.Log.Warn("servers cannot tell each other which models fail; each finds out alone", "error", err)
		return
	}
	c.cfg.Log.Info("servers tell each other again which models fail")
}

// tell writes a hint for each circuit that has opened. A hint that cannot be written stays for
// the next time, or until it is over.
func (c *Circuits) tell(ctx context.Context, hints store.Hints) error {
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.news))
	c.mu.Unlock()
	for _, key := range keys {
		c.mu.Lock()
		delete(c.news, key)
		one := *c.all[key]
		c.mu.Unlock()
		left := one.until.Sub(c.cfg.Now())
		if left < worth || one.byHint {
			continue
		}
		err := c.ask(ctx, func(ctx context.Context) error {
			return hints.PutHint(ctx, hintPrefix+key, []byte(one.kind), min(left, Longest))
		})
		if err != nil {
			c.mu.Lock()
			c.news[key] = true
			c.mu.Unlock()
			return err
		}
	}
	return nil
}

// listen reads what others have told.
func (c *Circuits) listen(ctx context.Context, from store.Hints) error {
	var hints []store.Hint
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		hints, err = from.Hints(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, h := range hints {
		key, ours := strings.CutPrefix(h.Name, hintPrefix)
		kind := failure.Kind(h.Data)
		if !ours || !opens(kind) {
			continue
		}
		now := c.cfg.Now()
		c.mu.Lock()
		one, is, until := c.all[key], same, time.Time{}
		if one != nil {
			is = one.heard(now, kind, h.Left)
			until = one.until
		}
		c.mu.Unlock()
		if is != same {
			c.log(key, is, kind, until)
		}
	}
	return nil
}

// opens reports whether failures of the kind can open a circuit.
func opens(kind failure.Kind) bool {
	switch kind {
	case failure.Cut, failure.Overloaded, failure.Rate, failure.Quota, failure.Auth:
		return true
	}
	return false
}

// ask calls the store, which may be somebody else's and panic.
func (c *Circuits) ask(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return routine.Caught(func() error { return call(ctx) })
}
