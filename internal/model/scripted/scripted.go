// Package scripted has the demo's model, which needs no key and no network. The words of
// the last user message tell it what to do; see [Help].
//
// Its answers depend only on the request: the history, the iteration and the attempt. It
// remembers nothing between calls, so a process that takes over a run continues with the
// same plan.
package scripted

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Options change how the model streams, not what it says.
type Options struct {
	// Delay is the pause before each delta; 0 means none.
	Delay time.Duration
	// Journal, if set, gets a line when a call starts and another when it ends:
	//
	//	model start thread=t run=r iteration=0 attempt=0
	//	model end thread=t run=r iteration=0 attempt=0 outcome=stop
	//
	// The outcome is the finish reason, or truncated, failed or stopped (by the reader
	// or by the context). Each line is one Write, so that a file opened for appending
	// has only whole lines, whatever happens to the process. The writer must be safe for
	// concurrent use, as an *os.File is.
	Journal io.Writer
}

// Model is the scripted model.
type Model struct {
	options  Options
	commands []command
}

var _ holdfast.Model = (*Model)(nil)

// New returns a scripted model.
func New(o Options) *Model { return &Model{options: o, commands: commands()} }

// Stream answers the last user message.
func (m *Model) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		if err := m.note("start", req, ""); err != nil {
			yield(holdfast.Delta{}, &holdfast.ModelError{Public: "The demo model's journal cannot be written.",
				Err: err})
			return
		}
		outcome := m.play(ctx, m.answer(req), req, yield)
		// The answer is complete; a journal that fails now must not hide it.
		_ = m.note("end", req, " outcome="+outcome)
	}
}

// answer decides what to say.
func (m *Model) answer(req *holdfast.ModelRequest) answer {
	s := read(req)
	for _, c := range m.commands {
		if match := c.words.FindStringSubmatch(s.user); match != nil {
			return formed(chosen(c.answer(s, match), req), req.Output)
		}
	}
	return formed(chosen(chat(s), req), req.Output)
}

func (m *Model) note(what string, req *holdfast.ModelRequest, more string) error {
	if m.options.Journal == nil {
		return nil
	}
	_, err := fmt.Fprintf(m.options.Journal, "model %s thread=%s run=%s iteration=%d attempt=%d%s\n", what,
		field(req.Thread), field(req.Run), req.Iteration, req.Attempt, more)
	return err
}

// field returns a value as a single word, quoted if necessary.
func field(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// play streams an answer and returns how it ended.
func (m *Model) play(
	ctx context.Context, a answer, req *holdfast.ModelRequest, yield func(holdfast.Delta, error) bool,
) string {
	for _, d := range a.deltas() {
		if err := m.pause(ctx, a.pace); err != nil {
			yield(holdfast.Delta{}, err)
			return "stopped"
		}
		if !yield(d, nil) {
			return "stopped"
		}
	}
	switch {
	case a.fail != nil:
		yield(holdfast.Delta{}, a.fail)
		return "failed"
	case a.finish == "":
		return "truncated"
	}
	yield(holdfast.Delta{Usage: a.usage(req), Finish: a.finish}, nil)
	return string(a.finish)
}

// pause waits before a delta.
func (m *Model) pause(ctx context.Context, pace int) error {
	d := m.options.Delay * time.Duration(pace)
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
