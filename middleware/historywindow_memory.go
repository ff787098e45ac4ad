package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

// The history itself remembers a window's cuts: each step is recorded as an activity, which
// people see where it was made. So it counts exactly on the branches that have it, it is
// committed before the answer that it leads to, and whichever server makes the next call shows
// the model the same.

// The activities of [HistoryWindow].
const (
	// ActivitySummary is the activity of a summary; its content has the range of messages
	// that it stands for, and the text.
	ActivitySummary = "holdfast.summary"
	// ActivityCut is the activity of a range of messages that is left out without a summary.
	ActivityCut = "holdfast.cut"
)

// NoticeCut is the notice that from now on the model is shown less, without a summary: how
// many messages are left out, and why, "window" or "too_long".
const NoticeCut = "holdfast.history_cut"

// Why something is left out: it was outside of the window, or too long for the model.
const (
	reasonWindow  = "window"
	reasonTooLong = "too_long"
)

// The values of [holdfast.ModelRequest].Cut.
const (
	cutWindow  = "window"
	cutSummary = "summary"
	cutTools   = "tools"
)

// recordedRange is the content of both activities.
type recordedRange struct {
	// From and To are the ids of the first and the last message of the range.
	From string `json:"from"`
	To   string `json:"to"`
	// Messages is how many messages the range has.
	Messages int `json:"messages"`
	// Shown are the ids of those that the model is still shown.
	Shown []string `json:"shown,omitempty"`
	// Text is the summary.
	Text string `json:"text,omitempty"`
	// Reason is why: "window" or "too_long".
	Reason string `json:"reason,omitempty"`
	// Model is the model that could not take more; the range is left out of what it is shown,
	// and not of what others are. Empty means that it is left out for all.
	Model string `json:"model,omitempty"`
	// MaxBytes bounds what that model is shown from then on.
	MaxBytes int `json:"maxBytes,omitempty"`
	// Run is the run that has left it out, Attempt the attempt at an answer that did so, and
	// Overflows how often the model had said before that it was too much.
	Run       string `json:"run,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Overflows int    `json:"overflows,omitempty"`
}

// leftOut is what a call leaves out.
type leftOut struct {
	// place is where what is shown begins.
	place
	// summarised is how many of the messages the text covers, and messages how many they
	// were when it was written.
	summarised, messages int
	text                 string
	maxBytes             int // 0 if this model has never said that it was too much
	overflows            int // that earlier attempts at the same answer have answered
}

// anyRecorded reports whether there may be something to recall.
func anyRecorded(history []holdfast.Message) bool {
	return slices.ContainsFunc(history, func(m holdfast.Message) bool { return m.Activity != nil })
}

// recall finds out what is left out for this model: the newest activity says from where
// on it is shown everything, and the newest summary covers what is before, or a part of it.
func (s *windowCall) recall(history []holdfast.Message) {
	s.now.maxBytes = s.boundIn(history)
	newest, last := true, true // last: no message of the conversation follows
	for i := len(history) - 1; i >= 0 && s.now.summarised == 0; i-- {
		last = last && history[i].Activity != nil
		r, from := s.rangeOf(&history[i])
		if from == 0 {
			continue
		}
		if newest {
			newest = false
			s.now.place = place{from, s.placesOf(r.Shown, from)}
			// After a takeover attempts are counted from 0 again.
			if last && r.Run == s.req.Run && r.Attempt < s.req.Attempt {
				s.now.overflows = r.Overflows
			}
		}
		if history[i].Activity.Type == ActivitySummary {
			s.now.summarised, s.now.messages, s.now.text = from, r.Messages, r.Text
		}
	}
}

// boundIn returns the newest bound of this model; 0 if there is none. A newer activity that
// is about all models has no bound, and does not change that of one.
func (s *windowCall) boundIn(history []holdfast.Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		if a := history[i].Activity; a == nil || !bytes.Contains(a.Content, []byte(`"maxBytes"`)) {
			continue // most summaries, of which there may be many
		}
		if r, from := s.rangeOf(&history[i]); from > 0 && r.MaxBytes > 0 {
			return r.MaxBytes
		}
	}
	return 0
}

// rangeOf returns what an activity of a window leaves out, and the index after it; 0 if the
// message is none, is about another model, or names a message that the agent may not show.
func (s *windowCall) rangeOf(m *holdfast.Message) (r recordedRange, from int) {
	if m.Activity == nil || m.Activity.Type != ActivitySummary && m.Activity.Type != ActivityCut {
		return r, 0
	}
	return s.decodeRange(m)
}

// decodeRange is rangeOf for an activity of a window.
func (s *windowCall) decodeRange(m *holdfast.Message) (r recordedRange, from int) {
	if json.Unmarshal(m.Activity.Content, &r) != nil || r.Model != "" && r.Model != s.req.Model {
		return r, 0
	}
	return r, s.after(r.To)
}

// record records what is left out now. The error is ignored: the run is about to stop, or
// there is none.
func (s *windowCall) record(activity, moved, reason string) {
	s.moved = moved
	r := recordedRange{
		From: s.messages[0].ID, To: s.messages[s.now.from-1].ID, Messages: s.now.from,
		Reason: reason,
	}
	if s.now.maxBytes > 0 {
		r.Model, r.MaxBytes = s.req.Model, s.now.maxBytes
	}
	if s.now.overflows > 0 {
		r.Run, r.Attempt, r.Overflows = s.req.Run, s.req.Attempt, s.now.overflows
	}
	if activity == ActivitySummary {
		r.Text = s.now.text
	}
	for _, i := range s.now.keeps {
		r.Shown = append(r.Shown, s.messages[i].ID)
	}
	_ = holdfast.Record(s.ctx, activity, r)
}

// notify sends a notice. An error is ignored: the run is about to stop.
func (s *windowCall) notify(name string, value any) { _ = holdfast.Notify(s.ctx, name, value) }

// hidden returns how many messages the model would not know at all if what is shown began
// at a place.
func (l *leftOut) hidden(at place) int {
	n := at.from - l.summarised
	for _, i := range at.keeps {
		if i >= l.summarised {
			n--
		}
	}
	return n
}

// noteSummary is an instruction, so that it precedes all messages; noteHidden tells the
// model how many are left out.
const (
	noteSummary = "Summary of the first %d messages of this conversation:\n%s"
	noteHidden  = "The conversation before this point is not shown: %d messages."
)

// notes tells the model what is left out. They stay the same between two steps.
func (s *windowCall) notes() []string {
	var notes []string
	if s.now.text != "" {
		notes = append(notes, fmt.Sprintf(noteSummary, s.now.messages, s.now.text))
	}
	if hidden := s.now.hidden(s.now.place); hidden > 0 {
		notes = append(notes, fmt.Sprintf(noteHidden, hidden))
	}
	return notes
}

// after returns the index after the message with an id; 0 if it is not there, or if nothing
// follows it: then there would be nothing to show.
func (v *windowView) after(id string) int {
	for i := len(v.messages) - 2; i >= 0 && id != ""; i-- {
		if v.messages[i].ID == id {
			return i + 1
		}
	}
	return 0
}

// placesOf returns the indices of the messages with these ids, of those before an index.
func (v *windowView) placesOf(ids []string, before int) []int {
	var out []int
	for i := 0; i < before && len(out) < len(ids); i++ {
		if slices.Contains(ids, v.messages[i].ID) {
			out = append(out, i)
		}
	}
	return out
}

// overflows reports whether a model call failed because the conversation is too long.
func overflows(err error) bool {
	var failed *holdfast.ModelError
	return errors.As(err, &failed) && failed.Kind == failure.TooLong
}

// errTooLong is the error if the person's last message and what belongs to it are too long.
func errTooLong() error {
	return &holdfast.ModelError{
		Kind: failure.TooLong,
		Public: "The last message, with what belongs to it, is too long for the model. Send a shorter one, or " +
			"begin a new conversation.",
		Err: errors.New("what has to be shown is too long for the model"),
	}
}
