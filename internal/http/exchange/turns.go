package exchange

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	fair "github.com/holdfast-agents/holdfast/internal/turns"
)

const (
	// LargeBody is the size, in bytes, from which a body is large: to decode it, compare
	// it with the history and store it takes the processor for tens of milliseconds.
	LargeBody = 256 << 10
	// longestTurn ends the turn of a request that waits for something else: a run that it
	// cancels, or a store that does not answer.
	longestTurn = 2 * time.Second
)

// Turns lets large requests in a few at a time, so that some of the processor is always
// left for everything else.
type Turns struct{ fair *fair.Turns }

// TurnsOf returns turns for this many large requests at a time.
func TurnsOf(places int) *Turns { return &Turns{fair.New(places, places)} }

// Take waits for the turn of a request with a body of this size, and returns a context that has
// it and what ends it. A small one need not wait. The error is ctx's.
func (t *Turns) Take(
	ctx context.Context, who holdfast.Principal, size int,
) (held context.Context, end func(), err error) {
	if size < LargeBody {
		return ctx, func() {}, nil
	}
	held, leave, err := t.fair.Hold(ctx, who)
	if err != nil {
		return nil, nil, err
	}
	timer := time.AfterFunc(longestTurn, leave)
	return held, func() {
		timer.Stop()
		leave()
	}, nil
}

// Decode decodes the body of a request when its turn has come.
func (t *Turns) Decode(r *http.Request, body []byte, decode func() error) error {
	_, end, err := t.Take(r.Context(), RecorderOf(r).Caller, len(body))
	if err != nil {
		return err
	}
	defer end()
	return decode()
}
