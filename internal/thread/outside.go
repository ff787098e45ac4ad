package thread

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// A call that is finished from outside. While it is open, the head has how far it has come;
// once it is over, a value says how it ended, so that a result that is sent again, or too
// late, gets the right answer. Of its one-time URLs only the hashes of their tokens are
// stored.

// OutsideCall is how far an outside call has come. It does not change: a call gets another one.
type OutsideCall struct {
	// Tokens are the hashes of the tokens that were issued, the oldest first.
	Tokens []string `json:"tokens,omitempty"`
	// ExpiresAt is when a result is too late; zero means never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Abandonable means that a new message of the user gives the call up.
	Abandonable bool `json:"abandonable,omitempty"`
	// Waits means that the call was handed out.
	Waits bool `json:"waits,omitempty"`
	// Result is what has come; nil until then. A run makes it the call's result.
	Result *OutsideResult `json:"result,omitempty"`
}

// OutsideResult is what came from outside.
type OutsideResult struct {
	// Text is what the model reads.
	Text string `json:"text,omitempty"`
	// Failed means that it is an error's text.
	Failed bool `json:"failed,omitempty"`
	// Hash is by what the same result is recognized when it is sent again.
	Hash string `json:"hash"`
	// Run is the id of the run that goes on with it; empty if the thread waits for more.
	Run string `json:"run,omitempty"`
	// At is when it came.
	At time.Time `json:"at"`
}

// The ways in which outside calls end.
const (
	EndFinished = "finished" // with a result from outside
	EndExpired  = "expired"  // nothing came in time
	EndGivenUp  = "given_up" // by the user, or because it could not be handed out
)

// OutsideEnd is how an outside call ended, or that its result has come.
type OutsideEnd struct {
	Format int    `json:"dataFormat"` // of this value
	Tool   string `json:"tool"`       // the tool's name
	End    string `json:"end"`        // EndFinished, EndExpired or EndGivenUp
	// Tokens are the hashes of the tokens of the call's URLs.
	Tokens []string `json:"tokens,omitempty"`
	// Hash, Run and At are those of the result; At is else when the call ended.
	Hash string    `json:"hash,omitempty"`
	Run  string    `json:"run,omitempty"`
	At   time.Time `json:"at"`
}

// maxTokens bounds how many URLs of a call work at a time. More are only issued when one
// process after the other dies while it hands the call out.
const maxTokens = 8

// change gives the call a changed copy of what is known of it outside.
func (c *Call) change(f func(o *OutsideCall)) {
	var o OutsideCall
	if c.Outside != nil {
		o = *c.Outside
	}
	f(&o)
	c.Outside = &o
}

// Issue notes a token's hash, before the token leaves the process. The first one begins
// the time that the call has.
func (c *Call) Issue(hash string, expiresAt time.Time) {
	c.change(func(o *OutsideCall) {
		if len(o.Tokens) == 0 {
			o.ExpiresAt = expiresAt
		}
		o.Tokens = append(slices.Clone(o.Tokens[max(0, len(o.Tokens)-maxTokens+1):]), hash)
	})
}

// HandedOut notes that the call waits for its result. expiresAt counts for a call without
// a token.
func (c *Call) HandedOut(expiresAt time.Time, abandonable bool) {
	c.change(func(o *OutsideCall) {
		if len(o.Tokens) == 0 {
			o.ExpiresAt = expiresAt
		}
		o.Waits, o.Abandonable = true, abandonable
	})
}

// Finish gives the call what came from outside. The person's answer about handing it out has
// no more meaning.
func (c *Call) Finish(r OutsideResult) {
	c.change(func(o *OutsideCall) { o.Result = &r })
	if c.Waits() {
		c.Interrupt = nil
	}
}

// TakeIn forgets that the call was handed out: its URLs work no more, and it is handed out
// again. A result that has come stays.
func (c *Call) TakeIn() {
	if c.Outside == nil || c.Outside.Result == nil {
		c.Outside = nil
		return
	}
	c.change(func(o *OutsideCall) { o.Tokens = nil })
}

// WaitsOutside reports whether the call waits for a result from outside.
func (c *Call) WaitsOutside() bool {
	return c.Outside != nil && c.Outside.Waits && c.Outside.Result == nil
}

// Expired reports whether no result has come in time.
func (c *Call) Expired(now time.Time) bool {
	return c.Outside != nil && c.Outside.Result == nil && !c.Outside.ExpiresAt.IsZero() &&
		!now.Before(c.Outside.ExpiresAt)
}

// Finished returns the result that has come from outside; nil if none has.
func (c *Call) Finished() *OutsideResult {
	if c.Outside == nil {
		return nil
	}
	return c.Outside.Result
}

// OutsideEnd returns how the call ends now. c.Outside must not be nil.
func (c *Call) OutsideEnd(now time.Time) OutsideEnd {
	e := OutsideEnd{
		Format: FormatBefore,
		Tool:   c.Name,
		Tokens: c.Outside.Tokens,
		End:    EndGivenUp,
		At:     now.UTC(),
	}
	switch r := c.Outside.Result; {
	case r != nil:
		e.End, e.Hash, e.Run, e.At = EndFinished, r.Hash, r.Run, r.At
	case c.Expired(now):
		e.End = EndExpired
	}
	return e
}

// PutOutsideEnd adds to the commit c how a call ends; nothing for a call that was not
// handed out.
func PutOutsideEnd(c *store.Commit, call *Call, now time.Time) {
	if call.Outside != nil {
		c.Put = append(c.Put, store.Value{Kind: store.KindOutside, ID: call.ID, Data: MustJSON(call.OutsideEnd(now))})
	}
}

// TextClosed returns what the model reads of a call that is closed without a result; text is
// that of calls that were not handed out.
func (c *Call) TextClosed(text string, now time.Time) string {
	switch {
	case c.Expired(now):
		return TextExpired
	case c.WaitsOutside():
		return TextGivenUp
	}
	return text
}

// OutsideCalls returns the calls that wait for a result from outside, as they are shown.
func (s *State) OutsideCalls() []threads.OutsideCall {
	var list []threads.OutsideCall
	for i := range s.Calls {
		if c := &s.Calls[i]; c.WaitsOutside() {
			list = append(list, threads.OutsideCall{
				ID:          c.ID,
				Tool:        c.Name,
				ExpiresAt:   c.Outside.ExpiresAt,
				Abandonable: c.Outside.Abandonable,
			})
		}
	}
	return list
}

// OutsideEnd reads how an outside call ended; nil if it has not, or if there is none.
func (rd Reader) OutsideEnd(ctx context.Context, key store.ThreadKey, call string) (*OutsideEnd, error) {
	raw, err := rd.Store.Value(ctx, key, store.KindOutside, call)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, ReadError(key, err)
	}
	var e OutsideEnd
	if err := Decode(raw, &e); err != nil {
		return nil, ReadError(key, err)
	}
	return &e, nil
}

// ResultHash returns a hash that is equal for results that say the same, however they are
// written, numbers too.
func ResultHash(result json.RawMessage, failed bool) string {
	kind := "result"
	if failed {
		kind = "error"
	}
	text, d := string(result), json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil && !d.More() {
		text = string(MustJSON(sameNumbers(v)))
	}
	sum := sha256.Sum256([]byte(kind + "\x00" + text))
	return hex.EncodeToString(sum[:16])
}

// OutsideMetadata returns the metadata of the event that ends a run whose thread waits for
// somebody outside to end these calls; nil for others.
func OutsideMetadata(calls []threads.OutsideCall) []byte {
	if len(calls) == 0 {
		return nil
	}
	return MustJSON(map[string]any{"holdfast": map[string]any{"outsideCalls": calls}})
}

// OutsideNotice returns the event that tells clients that a thread which is about to rest waits
// for somebody outside to end these calls; none without any. Stock clients read no metadata, and take the run's
// outcome for the end of the work.
func OutsideNotice(calls []threads.OutsideCall, now int64) []agui.Event {
	if len(calls) == 0 {
		return nil
	}
	ev := agui.Custom{Name: "holdfast.outside_calls", Value: MustJSON(map[string]any{"calls": calls})}
	ev.Timestamp = now
	return []agui.Event{ev}
}
