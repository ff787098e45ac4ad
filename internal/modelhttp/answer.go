package modelhttp

// Reading an answer: the driver that every provider's parser is run by. It finds out what
// the response is, reads its events, watches the time, and turns every way in which an
// answer can end into a last delta or an error.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/prompt"
)

// Parser takes one answer of a provider apart, and passes its deltas on with
// [Answer.Emit]. Errors are those of the [Answer]'s methods; each method returns the error
// of an Emit as it is.
type Parser interface {
	// Event takes one event. It returns [ErrComplete] after the delta with the finish.
	Event(ev Event) error
	// Whole takes a response that is one piece of JSON, which most providers send only
	// when something is wrong. It returns nil after the delta with the finish.
	Whole(data []byte) error
	// Ended decides about a stream that ends without the terminal event; cause is nil for
	// a clean end. It returns nil if the answer is complete nonetheless, after the delta
	// with the finish.
	Ended(cause error) error
}

// ErrComplete says that an answer is complete: what follows does not count.
var ErrComplete = errors.New("the answer is complete")

// errStopped means that the caller wants no more deltas.
var errStopped = errors.New("stopped")

// errSilent is the cause of a request that was given up for lack of an answer.
var errSilent = errors.New("the provider was silent for too long")

const (
	// afterDone is how long the end of the body may take after the terminal event, and
	// maxAfterDone how many bytes may come before it. A connection whose body was read to
	// its end is reused.
	afterDone    = 100 * time.Millisecond
	maxAfterDone = 4 << 10
	// maxRequestID bounds the provider's id of a request, in bytes.
	maxRequestID = 128
)

// Answer is an answer that is being read.
type Answer struct {
	client *Client
	yield  func(holdfast.Delta, error) bool
	// cancel ends the request.
	cancel  context.CancelCauseFunc
	reading context.Context
	request string // the provider's id
	// The seams of what was passed on in pieces: of a call, by its index.
	text, reasoning Seam
	calls           map[int]*Seam
	said            int // bytes of text so far
	// finished: the delta with the finish was passed on.
	finished bool
	timer    *time.Timer
	silence  *time.Timer
}

// Stream sends a request to BaseURL plus path and passes on what comes back. It reads in
// the caller's goroutine, and the last that it yields is a delta with a finish, or an
// error.
func (c *Client) Stream(
	ctx context.Context, path string, body *Body, yield func(holdfast.Delta, error) bool, parser func(*Answer) Parser,
) {
	prompt.Report(ctx, body.prompt(c))
	// A context of its own, so that ending only the reading is not taken for the caller
	// giving up.
	reading, cancel := context.WithCancelCause(ctx)
	a := &Answer{client: c, yield: yield, reading: reading, cancel: cancel}
	defer a.close()
	a.silence = time.AfterFunc(c.timeout, func() { cancel(errSilent) })
	res, err := c.post(reading, path, body.Bytes())
	if err == nil {
		// Everything that matters is read before it is closed.
		defer func() { _ = res.Body.Close() }()
		a.request = c.quote(requestID(res.Header))
		err = a.read(awake{res.Body, a}, parser(a))
	}
	if err != nil && !errors.Is(err, errStopped) {
		yield(holdfast.Delta{}, a.failed(ctx, err))
	}
}

// Read reads an answer from a reader, without a request.
func (c *Client) Read(body io.Reader, yield func(holdfast.Delta, error) bool, parser func(*Answer) Parser) error {
	reading, cancel := context.WithCancelCause(context.Background())
	a := &Answer{client: c, yield: yield, reading: reading, cancel: cancel}
	defer a.close()
	return a.read(body, parser(a))
}

func (a *Answer) close() {
	for _, t := range []*time.Timer{a.timer, a.silence} {
		if t != nil {
			t.Stop()
		}
	}
	a.cancel(nil)
}

// awake is a body whose silence is watched.
type awake struct {
	body io.Reader
	a    *Answer
}

// Read implements io.Reader.
func (r awake) Read(p []byte) (int, error) {
	r.a.silence.Reset(r.a.client.timeout)
	n, err := r.body.Read(p)
	// While the caller works on what was read, nobody waits for the provider.
	r.a.silence.Stop()
	if cause := context.Cause(r.a.reading); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	return n, err
}

// read reads an answer of any kind to its end.
func (a *Answer) read(from io.Reader, p Parser) error {
	body := bufio.NewReaderSize(from, readBuffer)
	// The headers do not always tell what it is.
	switch firstByte(body) {
	case '{', '[':
		return a.whole(body, p)
	case '<':
		return a.page(body)
	}
	events := &events{r: body}
	for {
		ev, err := events.next()
		switch {
		case errors.Is(err, errTooLong):
			return tooLong()
		case errors.Is(err, io.EOF):
			return p.Ended(nil)
		case err != nil:
			return p.Ended(err)
		}
		if err := p.Event(ev); err != nil {
			if a.finished { // even if the caller has left at the last delta
				a.drain(body)
			}
			if errors.Is(err, ErrComplete) {
				return nil
			}
			return err
		}
	}
}

// firstByte looks ahead to the first byte that is not a space; 0 if there is none.
func firstByte(r *bufio.Reader) byte {
	for n := 1; n <= r.Size(); n++ {
		b, err := r.Peek(n)
		if err != nil {
			return 0
		}
		if len(bytes.TrimSpace(b)) > 0 {
			return b[n-1]
		}
	}
	return 0
}

// drain reads the end of the body, so that the connection can be reused.
func (a *Answer) drain(body io.Reader) {
	a.Within(afterDone)
	// Neither its content nor an error matters.
	_, _ = io.CopyN(io.Discard, body, maxAfterDone)
}

// whole reads the response of a provider that does not stream.
func (a *Answer) whole(body io.Reader, p Parser) error {
	data, err := io.ReadAll(io.LimitReader(body, MaxPiece+1))
	switch {
	case err != nil:
		return a.Truncated(err)
	case len(data) > MaxPiece:
		return tooLong()
	}
	return p.Whole(unwrapped(data))
}

// page handles a web page: the response of a wrong base URL, and of some gateways in
// trouble.
func (a *Answer) page(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	return &holdfast.ModelError{
		Kind:      failure.Overloaded,
		Retryable: true,
		Status:    http.StatusOK,
		Public: "The model's provider answered with a web page. If this persists, the model's base URL is wrong: " +
			"the documentation of the provider's API has it.",
		Err: errors.Join(errors.New("a web page: "+a.client.quote(string(text))), err),
	}
}

// Emit passes a delta on. Its texts may end within a character, whose other half is in the
// next delta of the same text.
func (a *Answer) Emit(d holdfast.Delta) error {
	d.Text, d.Reasoning = a.text.Join(d.Text), a.reasoning.Join(d.Reasoning)
	a.said += len(d.Text)
	// Most answers need none.
	if d.Call != nil && (a.calls != nil || !utf8.ValidString(d.Call.Arguments)) {
		d.Call.Arguments = a.seam(d.Call.Index).Join(d.Call.Arguments)
	}
	a.finished = a.finished || d.Finish != ""
	if !a.yield(d, nil) {
		return errStopped
	}
	return nil
}

// seam returns the seam of a call's arguments.
func (a *Answer) seam(index int) *Seam {
	if a.calls == nil {
		a.calls = map[int]*Seam{}
	}
	if a.calls[index] == nil {
		a.calls[index] = &Seam{}
	}
	return a.calls[index]
}

// Said returns how many bytes of text were passed on so far.
func (a *Answer) Said() int { return a.said }

// Stopped reports whether an error means that the caller wants no more deltas.
func Stopped(err error) bool { return errors.Is(err, errStopped) }

// Within gives up reading after d: the parser's Ended is called.
func (a *Answer) Within(d time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(d, func() { a.cancel(nil) })
		return
	}
	a.timer.Reset(d)
}

// Truncated returns the error of an answer that is not complete; cause may be nil.
func (a *Answer) Truncated(cause error) error {
	e := &holdfast.ModelError{
		Kind:      failure.Cut,
		Retryable: true,
		Status:    http.StatusOK,
		Public:    "The model's answer was cut off.",
	}
	e.Err = holdfast.ErrTruncated
	if cause != nil {
		e.Err = errors.Join(e.Err, errors.New(a.client.quote(cause.Error())))
	}
	return e
}

// Undecodable returns the error of an event that is not JSON of the expected form.
func (a *Answer) Undecodable(cause error) error {
	return a.Truncated(fmt.Errorf("an event is not JSON of the expected form: %w", cause))
}

// NotStreamed returns the error of a response in one piece that a parser cannot use.
func (a *Answer) NotStreamed(data []byte) error {
	return &holdfast.ModelError{
		Kind:   failure.Invalid,
		Status: http.StatusOK,
		Public: "The model's provider did not stream its answer; the server's operator must check the base URL.",
		Err:    errors.New("an answer in one piece: " + a.client.quote(string(data))),
	}
}

// TooMuch returns the error of an answer that is larger than the server takes, in what.
func (a *Answer) TooMuch(what string) error { return tooMuch(what) }

func tooMuch(what string) error {
	return &holdfast.ModelError{
		Kind: failure.Invalid, Status: http.StatusOK,
		Public: "The model's provider was stopped because it sent too much: " + what + ".", Err: errTooLong,
	}
}

// tooLong is tooMuch for a piece of more than MaxPiece.
func tooLong() error { return tooMuch(fmt.Sprintf("more than %d MiB in one piece", MaxPiece>>20)) }

// failed turns any error into a [holdfast.ModelError] that says whose it is: one that is
// not one yet comes from a connection that failed, where another attempt may help.
func (a *Answer) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var e *holdfast.ModelError
	if !errors.As(err, &e) {
		e = &holdfast.ModelError{
			Kind: failure.Overloaded, Retryable: true, Public: "The connection to the model's provider failed.",
			Err: errors.New(a.client.quote(err.Error())),
		}
		if cause := context.Cause(a.reading); errors.Is(cause, errSilent) {
			e.Kind, e.Public, e.Err = failure.Cut, "The model's provider did not answer in time.", cause
		}
	}
	e.Provider, e.Model = a.client.Provider, a.client.Model
	if e.RequestID == "" {
		e.RequestID = a.request
	}
	return e
}

// requestID returns the provider's id of a request; empty if there is none that can be
// logged.
func requestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		id := h.Get(name)
		if id != "" && len(id) <= maxRequestID &&
			!strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return id
		}
	}
	return ""
}
