package middleware

import (
	"errors"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// Where a window summarises, the same model is asked for a summary of what is left out,
// before the call that leaves it out. A summary is extended by the next one, and drops out
// of sight when the thread goes back to before it was made. If the model fails to write
// one, the call goes ahead with less history: a summary is never a reason for a run to
// fail.

const (
	// NoticeSummarised is the notice of a new summary: how many messages it covers, and its
	// length in bytes.
	NoticeSummarised = "holdfast.history_summarised"
	// NoticeSummaryFailed is the notice of a summary that could not be made: how many
	// messages are therefore not shown, and why.
	NoticeSummaryFailed = "holdfast.summary_failed"
)

// summarise makes a new summary, from the present one and the messages up to a place, and
// records it. It reports false if the model failed to write one. An error ends the model
// call.
func (s *windowCall) summarise(to place) (made bool, err error) {
	limit := maxTranscript
	if s.now.maxBytes > 0 {
		limit = min(limit, 2*s.now.maxBytes/3) // half of what was too much
	}
	text, size, err := s.ask(to.from, limit)
	for overflows(err) && size > minTranscript { // what is to be summarised is too long itself
		text, size, err = s.ask(to.from, size/2)
	}
	if s.stopped {
		return true, nil
	}
	if err != nil {
		if decides(err) || s.ctx.Err() != nil {
			return false, err
		}
		s.notify(NoticeSummaryFailed, map[string]any{"messages": s.now.hidden(to), "reason": reasonOf(err)})
		return false, nil
	}
	s.now.place = to
	s.now.summarised, s.now.messages, s.now.text = to.from, to.from, text
	s.record(ActivitySummary, cutSummary, "")
	s.notify(NoticeSummarised, map[string]any{"messages": s.now.messages, "bytes": len(text)})
	return true, nil
}

// use adds what a summary has used.
func (s *windowCall) use(u *holdfast.Usage) {
	if u != nil && s.usage != nil {
		u = addUsage(u, s.usage)
	}
	if u != nil {
		s.usage = u
	}
}

// decides reports whether an error is a decision about the run, such as that of a budget,
// rather than a failure to summarise.
func decides(err error) bool {
	var ask *holdfast.Interrupt
	var end *holdfast.Error
	return errors.As(err, &ask) || errors.As(err, &end)
}

// reasonOf returns why there is no summary, in words that people may see.
func reasonOf(err error) string {
	var failed *holdfast.ModelError
	switch {
	case errors.As(err, &failed) && failed.Public != "":
		return failed.Public
	case errors.Is(err, errNoSummary):
		return "The model's summary was empty or cut off."
	}
	return "The model failed."
}

var errNoSummary = errors.New("the summary is empty or cut off")

// maxSummary bounds the summary that a thread keeps, in bytes.
const maxSummary = 16 << 10

// ask asks the model for a summary of the messages up to an index, of which it is shown at
// most limit bytes. It returns how many that were. Meanwhile the reader gets empty deltas,
// so that a model that writes a long summary is not taken for a silent one.
func (s *windowCall) ask(to, limit int) (said string, size int, err error) {
	asked := transcript(s.now.text, s.messages[s.now.summarised:to], limit)
	req := *s.req
	req.Cut = cutSummary
	req.Instructions, req.Tools, req.Context = []string{s.SummaryPrompt}, nil, nil
	req.ClientInstructions, req.Output, req.State, req.StateTooLarge = nil, nil, nil, 0
	req.Messages, req.Tail = []holdfast.Message{{ID: "summary", Role: holdfast.RoleUser, Text: asked}}, 0
	var text strings.Builder
	var used *holdfast.Usage
	finish := holdfast.FinishReason("")
	for d, err := range s.next(s.ctx, &req) {
		if err != nil {
			return "", min(len(asked), limit), err
		}
		if d.Usage != nil {
			used = d.Usage
		}
		text.WriteString(d.Text)
		if finish = d.Finish; finish != "" {
			break
		}
		if s.stopped = !s.yield(holdfast.Delta{}, nil); s.stopped {
			return "", 0, nil
		}
	}
	s.use(used)
	said = strings.TrimSpace(text.String())
	if said == "" || finish != holdfast.FinishStop && finish != holdfast.FinishLength {
		return "", 0, errNoSummary
	}
	return shortened(said, maxSummary), 0, nil
}
