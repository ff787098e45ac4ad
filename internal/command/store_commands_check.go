package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/settings"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The command holdfast check: it reads every thread of a store and says what is damaged or was written
// by another version of the program, and with --index it compares the lists by which servers find
// threads, and puts them right.

// check prints a line for each problem, a line for each state that another version of
// the program has written, and how much it has checked.
func (c *storeCommand) check(args []string) error {
	f := c.flags("check")
	file := f.String("config", c.getenv("HOLDFAST_CONFIG"),
		"the agents file, for the states of their middleware; default "+defaultConfig+" if it exists (HOLDFAST_CONFIG)")
	index := f.Bool("index", false, "compare the index of threads with the threads instead, and put it right")
	if _, err := c.parse(f, args); err != nil {
		return err
	}
	if *index {
		return c.mendIndex()
	}
	agents, err := c.agents(*file)
	if err != nil {
		return err
	}
	var only *store.ThreadKey
	if c.thread != "" {
		key := c.key()
		only = &key
	}
	var done offline.Checked
	states := &stateReport{w: c.stdout, threads: map[state.PendingMigration]int{}}
	err = c.on(func(ctx context.Context, store store.Store) (err error) {
		done, err = offline.Check(ctx, store, only, func(p offline.Problem) {
			fmt.Fprintf(c.stdout, "%s: %s: %s\n", printable(p.Key.String()), p.What, printable(p.Detail))
		})
		if err != nil {
			return err
		}
		if err := offline.CheckStates(ctx, store, agents, only, states.thread); err != nil {
			return err
		}
		return printFormats(ctx, c.stdout, store)
	})
	switch {
	case errors.Is(err, store.ErrUnreadable):
		fmt.Fprintf(c.stdout, "store_damaged: %s\n", printable(err.Error()))
		done.Problems++
	case err != nil:
		return err
	}
	fmt.Fprintf(c.stdout, "%s checked, %s\n", count(done.Threads, "thread"), count(done.Problems, "problem"))
	if done.Busy > 0 {
		fmt.Fprintf(c.stdout, "%s not checked: running, and changing all the time\n", count(done.Busy, "thread"))
	}
	if lost := states.summary(); lost || done.Problems > 0 {
		return errProblems
	}
	return nil
}

// mendIndex puts the index right, and prints a line for each thread that was not where it should be.
func (c *storeCommand) mendIndex() error {
	var only *store.ThreadKey
	if c.thread != "" {
		key := c.key()
		only = &key
	}
	// To write, a store is made if it is not there; of a wrong path none must be.
	err := c.on(func(context.Context, store.Store) error { return nil })
	if err != nil {
		return err
	}
	c.store.Create = true
	compared, mended := 0, 0
	err = c.on(func(ctx context.Context, store store.Store) (err error) {
		compared, err = offline.MendIndex(ctx, store, only, func(p offline.Problem) {
			mended++
			fmt.Fprintf(c.stdout, "%s: %s: %s\n", printable(p.Key.String()), p.What, printable(p.Detail))
		})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "%s compared with the index, %s\n", count(compared, "thread"), count(mended, "correction"))
	return nil
}

// agents reads the file, but makes no models, which would need keys.
func (c *storeCommand) agents(file string) ([]holdfast.Agent, error) {
	parts := c.parts
	parts.Getenv, parts.Settings = c.getenv, settings.Checks()
	agents, _, err := server.ValidateAgents(cmp.Or(file, defaultConfig), parts)
	if errors.Is(err, fs.ErrNotExist) && file == "" {
		return nil, nil
	}
	return agents, err
}

// stateReport prints what stored states need, and counts them.
type stateReport struct {
	w       io.Writer
	threads map[state.PendingMigration]int
}

func (r *stateReport) thread(key store.ThreadKey, needs []state.PendingMigration) {
	for _, m := range needs {
		r.threads[m]++
		text, _ := need(m)
		fmt.Fprintf(r.w, "%s: state %s is %s\n", printable(key.String()), m.Name, text)
	}
}

// summary prints a line for each state and version. lost reports whether there is a state
// that cannot be continued.
func (r *stateReport) summary() (lost bool) {
	byState := func(a, b state.PendingMigration) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.From, b.From))
	}
	for _, m := range slices.SortedFunc(maps.Keys(r.threads), byState) {
		text, ok := need(m)
		lost = lost || !ok
		fmt.Fprintf(r.w, "state %s: %s with %s\n", m.Name, count(r.threads[m], "thread"), text)
	}
	return lost
}

// need says what a stored state needs; ok is false if this program cannot provide it.
func need(m state.PendingMigration) (text string, ok bool) {
	switch {
	case m.From > m.To:
		return fmt.Sprintf("version %d, which is newer than this program knows (%d)", m.From, m.To), false
	case m.Missing > 0:
		return fmt.Sprintf("version %d, %d is needed: there is no migration from %d to %d", m.From, m.To, m.Missing,
			m.Missing+1), false
	}
	return fmt.Sprintf("version %d, %d is needed: migrated when it is next read", m.From, m.To), true
}
