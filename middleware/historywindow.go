package middleware

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// A history window is a Model hook: it decides what of the history a call shows, and when
// that has to become less. Which places a history can be cut at, and how much is shown from
// there on, is in historywindow_view.go; what earlier calls have left out, and how that is
// recorded, in historywindow_memory.go; summaries are made in historywindow_summary.go.

// HistoryWindow bounds how much of a conversation the model is shown. The history itself does
// not change. A tool call is never separated from its result. A cut is recorded as an activity
// of the thread, so that the messages stay left out on every server.
//
// An agent should have only one. To an agent that has none, the server gives one that only
// answers overflows.
func HistoryWindow(o HistoryWindowOptions) holdfast.Middleware {
	mustBeValid("HistoryWindow", o)
	w := &window{o.withDefaults()}
	m := holdfast.Middleware{Name: "holdfast.history_window"}
	if w.bounds() == (bounds{}) && w.OnOverflow == WindowFail {
		return m
	}
	m.Model, m.Notices = w.model, []string{NoticeCut}
	if w.Then == WindowSummarise {
		m.Notices = append(m.Notices, NoticeSummarised, NoticeSummaryFailed)
	}
	return m
}

// window is a history window with its defaults.
type window struct{ HistoryWindowOptions }

// bounds returns how much is shown.
func (w *window) bounds() bounds { return bounds{w.MaxMessages, w.MaxBytes} }

// model is the Model hook.
func (w *window) model(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		if w.bounds() == (bounds{}) && req.Overflows == 0 && !anyRecorded(holdfast.HistoryFrom(ctx)) {
			return next(ctx, req)
		}
		return func(yield func(holdfast.Delta, error) bool) {
			s := &windowCall{
				window:     w,
				windowView: view(req.History()),
				ctx:        ctx,
				req:        req,
				next:       next,
				yield:      yield,
			}
			if err := s.run(); err != nil && !s.stopped {
				yield(holdfast.Delta{}, err)
			}
		}
	}
}

// windowCall is a model call through a window. It may have to leave out more than the call
// before it, and to have a summary made first.
type windowCall struct {
	*window
	*windowView
	ctx   context.Context
	req   *holdfast.ModelRequest
	next  holdfast.ModelCall
	yield func(holdfast.Delta, error) bool
	now   leftOut
	// moved is why this call leaves out more than the one before it; see
	// [holdfast.ModelRequest].Cut.
	moved string
	// usage is what summaries have used; nil if there were none.
	usage   *holdfast.Usage
	stopped bool // the reader wants no more
	spoke   bool // the model has begun to answer
}

// run makes the call. It returns an error that the reader has not got.
func (s *windowCall) run() error {
	s.recall(holdfast.HistoryFrom(s.ctx))
	var err error
	if s.req.Overflows > s.now.overflows && s.OnOverflow == WindowShrink {
		err = s.shrink()
	} else {
		err = s.fit()
	}
	for err == nil && !s.stopped {
		if overflown := s.answer(); !overflown {
			return nil
		}
		err = s.shrink()
	}
	return err
}

// fit leaves out more if too much is shown. That is done in large steps, because each of
// them makes the provider's cache of the conversation useless.
func (s *windowCall) fit() error {
	b := s.bounds().within(s.now.maxBytes)
	if b.hold(s.size(place{})) {
		s.now = leftOut{maxBytes: s.now.maxBytes, overflows: s.now.overflows}
		return nil
	}
	to := s.now.place
	if s.due(b) {
		next := s.best(b.half())
		if !b.half().hold(s.size(next)) {
			next = s.best(b)
		}
		if next.from > to.from {
			to = next
		}
	}
	unsummarised := s.Then == WindowSummarise && to.from > s.now.summarised
	if to.from == s.now.from && !unsummarised {
		return nil
	}
	return s.leaveOut(to, reasonWindow)
}

// due reports whether so much is shown that more has to be left out.
func (s *windowCall) due(b bounds) bool {
	messages, bytes := s.size(s.now.place)
	if s.Then != WindowSummarise {
		return !b.hold(messages, bytes)
	}
	outside := s.best(b).from - s.now.from
	return outside >= s.SummaryEvery || b.bytes > 0 && bytes > b.bytes+b.bytes/4
}

// best returns the place from which as much as possible is shown within the bounds. The
// person's first messages count for less than the model's limit.
func (s *windowCall) best(b bounds) place {
	p := s.first(b, *s.KeepFirst)
	if s.now.maxBytes > 0 && !b.hold(s.size(p)) {
		return s.first(b, 0)
	}
	return p
}

// shrink shows at most half of what was shown, because the provider has said that the
// conversation is too long, and remembers a smaller bound. It returns an error if nothing
// more can be left out.
func (s *windowCall) shrink() error {
	_, bytes := s.size(s.now.place)
	// The present size is too large, and a step would follow at once if half of it were
	// the bound.
	s.now.maxBytes, s.now.overflows = bounds{bytes: max(bytes-bytes/4, 1)}.within(s.now.maxBytes).bytes, s.req.Overflows
	to := s.best(bounds{bytes: max(bytes/2, 1)})
	if _, left := s.size(to); left >= bytes {
		return errTooLong()
	}
	return s.leaveOut(to, reasonTooLong)
}

// leaveOut leaves out what is before a place, with a summary of it if there is to be one.
// An error ends the model call.
func (s *windowCall) leaveOut(to place, reason string) error {
	if s.Then == WindowSummarise && to.from > s.now.summarised {
		if made, err := s.summarise(to); made || err != nil {
			return err
		}
	}
	if to.equal(s.now.place) {
		return nil // without a summary, but that was so before
	}
	s.now.place = to
	s.record(ActivityCut, cutWindow, reason)
	s.notify(NoticeCut, map[string]any{"messages": s.now.hidden(to), "reason": reason})
	return nil
}

// answer asks the model, and adds what summaries have used to the usage that it reports. It
// reports whether to ask again with less, because the conversation was too long again.
func (s *windowCall) answer() (overflown bool) {
	// Reported first, so that it counts even if the answer fails. It also has what was
	// recorded committed before the answer.
	if s.moved != "" && !s.yield(holdfast.Delta{Usage: s.usage}, nil) {
		s.stopped = true
		return false
	}
	for d, err := range s.next(s.ctx, s.request()) {
		if err != nil && !s.spoke && s.req.Overflows > 0 && s.OnOverflow == WindowShrink && overflows(err) {
			return true
		}
		if d.Usage != nil && s.usage != nil {
			d.Usage = addUsage(d.Usage, s.usage)
		}
		s.spoke = s.spoke || d != holdfast.Delta{Usage: d.Usage}
		if !s.yield(d, err) || err != nil {
			break
		}
	}
	return false
}

// request returns what to ask the model.
func (s *windowCall) request() *holdfast.ModelRequest {
	if s.now.from == 0 {
		return s.req
	}
	r := *s.req
	if s.moved != "" {
		r.Cut = s.moved
	}
	r.Instructions = append(append([]string(nil), r.Instructions...), s.notes()...)
	r.Messages = append(s.shown(s.now.place), s.req.Messages[len(s.messages):]...) // with the tail
	return &r
}
