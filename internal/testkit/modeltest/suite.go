package modeltest

// The tests of the suite.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

// Run runs the suite.
func Run(t *testing.T, p Provider) {
	t.Helper()
	s := &suite{p}
	t.Run("answers", s.answers)
	t.Run("usage", s.usage)
	t.Run("other forms", s.forms)
	t.Run("torn characters", s.torn)
	t.Run("unknown events", s.unknown)
	t.Run("cut at every byte", s.cut)
	t.Run("misbehaviour", s.misbehaviour)
	t.Run("errors within an answer", s.errors)
	t.Run("refusals", s.refusals)
	t.Run("cancelled", s.cancelled)
	t.Run("left", s.left)
	t.Run("secrets return", s.secrets)
	t.Run("secrets refused", s.refused)
	t.Run("same bytes", s.bytes)
	t.Run("shared state", s.sharedState)
}

// samples are whole answers.
func (s *suite) samples() map[string]Answer {
	thinks := func(pieces ...string) []string {
		if s.Thinks {
			return pieces
		}
		return nil
	}
	all := map[string]Answer{
		"text":      {Text: []string{"Hel", "lo \u00e9\u2028\"\\\n", "<world>"}, Finish: holdfast.FinishStop},
		"reasoning": {Reasoning: thinks("let ", "me see"), Text: []string{"done"}, Finish: holdfast.FinishStop},
		"nothing":   {Finish: holdfast.FinishStop},
		"a call": {
			Text:   []string{"I look."},
			Calls:  []Call{{ID: "c1", Name: "look", Arguments: []string{`{"x":`, `1.5}`}}},
			Finish: holdfast.FinishToolCalls,
		},
		"empty arguments": {Calls: []Call{{ID: "c1", Name: "wait"}}, Finish: holdfast.FinishToolCalls},
		"parallel calls": {
			Reasoning: thinks("hm"),
			Calls: []Call{
				{ID: "c1", Name: "look", Arguments: []string{`{"x":`, `1}`}},
				{ID: "c2", Name: "look", Arguments: []string{`{"x`, `":2}`}},
				{ID: "c3", Name: "wait", Arguments: []string{"{}"}},
			},
			Finish: holdfast.FinishToolCalls,
		},
		"cut by its limit": {Text: []string{"and then"}, Finish: holdfast.FinishLength},
	}
	if !s.InOrder {
		all["cut in the arguments"] = Answer{
			Calls:  []Call{{ID: "c1", Name: "look", Arguments: []string{`{"x":`}}},
			Finish: holdfast.FinishLength,
		}
	}
	return all
}

// want is what a model says of an answer.
func (s *suite) want(a Answer) string {
	h := &heard{text: strings.Join(a.Text, ""), reasoning: strings.Join(a.Reasoning, ""), finish: a.Finish}
	for _, c := range a.Calls {
		id, arguments := c.ID, strings.Join(c.Arguments, "")
		if s.Nameless {
			id = ""
		}
		if arguments == "" || arguments == "{}" {
			arguments = "" // both mean none
		}
		h.calls = append(h.calls, fmt.Sprintf("%s %s %s", id, c.Name, arguments))
	}
	return h.String()
}

// got is what was heard, in the form of want.
func got(h *heard) string {
	for i, c := range h.calls {
		h.calls[i] = strings.TrimSuffix(c, "{}")
	}
	return h.String()
}

func (s *suite) answers(t *testing.T) {
	t.Parallel()
	for name, a := range s.samples() {
		h := s.reply(t, strings.Join(s.Stream(a), ""))
		if got, want := got(h), s.want(a); got != want || h.err != nil {
			t.Errorf("%s:\n%s, %v\nwant\n%s", name, got, h.err, want)
		}
		named := s.model(t, "m1", says(""))
		if provider, model := named.ModelName(); provider == "" || model != "m1" {
			t.Errorf("the model's name is %q of %q", model, provider)
		}
	}
}

// usage: six counts, and they mean the same for every provider.
func (s *suite) usage(t *testing.T) {
	t.Parallel()
	h := s.reply(t, strings.Join(s.Stream(s.samples()["reasoning"]), ""))
	if h.usage == nil {
		t.Fatal("there is none")
	}
	if h.usage.Provider == "" || h.usage.Model == "" {
		t.Errorf("it is nobody's: %+v", h.usage)
	}
	u, want := *h.usage, s.Usage
	u.Provider, u.Model, want.Provider, want.Model = "", "", "", ""
	g, err := json.Marshal(u)
	w, err2 := json.Marshal(want)
	if err := errors.Join(err, err2); err != nil || string(g) != string(w) {
		t.Errorf("%s, want %s (%v)", g, w, err)
	}
	// An answer that fails was paid for too.
	events := s.Stream(s.samples()["text"])
	for _, end := range append([]string{""}, s.Errors[failure.Overloaded]...) {
		h = s.reply(t, strings.Join(events[:len(events)-s.Trailing-1], "")+end)
		if counted := h.usage != nil && h.usage.InputTokens != nil &&
			*h.usage.InputTokens == Input; counted != s.CountsEarly || h.err == nil {
			t.Errorf("after %q the usage is %+v, the error %v", end, h.usage, h.err)
		}
	}
}

func (s *suite) unknown(t *testing.T) {
	t.Parallel()
	for name, a := range s.samples() {
		events := s.Stream(a)
		for _, unknown := range s.Unknown {
			for at := range len(events) - s.Trailing {
				h := s.reply(t, strings.Join(slices.Insert(slices.Clone(events), at, unknown), ""))
				if got, want := got(h), s.want(a); got != want || h.err != nil {
					t.Errorf("%s with %q at %d:\n%s, %v\nwant\n%s", name, unknown, at, got, h.err, want)
				}
			}
		}
	}
}

func (s *suite) misbehaviour(t *testing.T) {
	t.Parallel()
	events := s.Stream(s.samples()["text"])
	half := strings.Join(events[:len(events)/2], "")
	huge := "data: " + strings.Repeat("x", 13<<20)
	for name, c := range map[string]struct {
		stream string
		kinds  []failure.Kind
	}{
		"nothing":             {"", []failure.Kind{failure.Cut}},
		"only comments":       {": hi\n\n: hi\n\n", []failure.Kind{failure.Cut}},
		"a web page":          {"<!doctype html>\n<html>welcome</html>\n", []failure.Kind{failure.Overloaded}},
		"JSON":                {`{"hello":"world"}`, []failure.Kind{failure.Cut, failure.Invalid, failure.Overloaded}},
		"JSON without an end": {`{"hello":`, []failure.Kind{failure.Cut, failure.Invalid, failure.Overloaded}},
		"[DONE] alone":        {half + "data: [DONE]\n\n", nil},
		"an undecodable one": {half + s.Undecodable + strings.Join(events[len(events)/2:], ""),
			[]failure.Kind{failure.Cut}},
		"a huge line": {half + huge, []failure.Kind{failure.Invalid}},
		"a huge event": {half + strings.Repeat("data: "+strings.Repeat("x", 1<<16)+"\n", 200),
			[]failure.Kind{failure.Invalid}},
	} {
		if name == "[DONE] alone" && s.Trailing > 0 {
			continue // there it is the terminal event
		}
		h := s.reply(t, c.stream)
		e := h.failure()
		if e == nil {
			t.Errorf("%s: it was taken for an answer: %s, %v", name, h, h.err)
			continue
		}
		if len(c.kinds) > 0 && !slices.Contains(c.kinds, e.Kind) {
			t.Errorf("%s: kind %s, want one of %s: %v", name, e.Kind, c.kinds, e)
		}
		s.told(t, name, e)
	}
}

// told checks what every failure says.
func (s *suite) told(t *testing.T, name string, e *holdfast.ModelError) {
	t.Helper()
	if e.Public == "" || e.Provider == "" || e.Model != "m1" || e.RequestID != "req-1" {
		t.Errorf("%s: public %q, provider %q, model %q, request %q", name, e.Public, e.Provider, e.Model, e.RequestID)
	}
	if strings.Contains(e.Error(), Key) || strings.Contains(e.Public, Key) ||
		strings.Contains(e.Public, "private prompt") {
		t.Errorf("%s: a secret is told: %v", name, e)
	}
}

func retries(kind failure.Kind) bool {
	return kind == failure.Cut || kind == failure.Overloaded || kind == failure.Rate
}

// errors: an error event counts as an error wherever it comes before the end, and not
// after it.
func (s *suite) errors(t *testing.T) {
	t.Parallel()
	a := s.samples()["a call"]
	events := s.Stream(a)
	for kind, said := range s.Errors {
		for _, event := range said {
			for at := range len(events) - s.Trailing {
				h := s.reply(t, strings.Join(slices.Insert(slices.Clone(events), at,
					strings.ReplaceAll(event, "KEY", Key)), ""))
				e := h.failure()
				if e == nil || e.Kind != kind || e.Retryable != retries(kind) {
					t.Errorf("%s at %d: %s, %v, want %s", event, at, h, h.err, kind)
					break
				}
				s.told(t, event, e)
			}
			if h := s.reply(t, strings.Join(events, "")+event); h.err != nil {
				t.Errorf("%s after the end: %v", event, h.err)
			}
		}
	}
	for kind, streams := range s.Endings {
		for _, stream := range streams {
			h := s.reply(t, stream)
			if e := h.failure(); e == nil || e.Kind != kind || e.Retryable != retries(kind) {
				t.Errorf("%s: %s, %v, want %s", stream, h, h.err, kind)
			} else {
				s.told(t, stream, e)
			}
		}
	}
}

func (s *suite) refusals(t *testing.T) {
	t.Parallel()
	seen := map[failure.Kind]bool{}
	for _, r := range s.Refusals {
		w := says(strings.ReplaceAll(r.Body, "KEY", Key))
		w.status, w.header = r.Status, r.Header
		e := ask(t.Context(), t, s.model(t, "m1", w), question()).failure()
		if e == nil || e.Kind != r.Kind || e.Retryable != retries(r.Kind) || e.Status != r.Status {
			t.Errorf("%d %s: %+v, want %s", r.Status, r.Body, e, r.Kind)
			continue
		}
		if wait := e.RetryAfter > 0; wait != (r.Header["Retry-After"] != "") {
			t.Errorf("%d %s: it is to wait %v", r.Status, r.Body, e.RetryAfter)
		}
		s.told(t, r.Body, e)
		seen[r.Kind] = true
	}
	for _, kind := range []failure.Kind{failure.Overloaded, failure.Rate, failure.Quota, failure.Auth, failure.TooLong,
		failure.Invalid} {
		if !seen[kind] {
			t.Errorf("the fake has no refusal of kind %s: %v", kind, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// cancelled: a caller that gives up gets its own reason, not a failure of the model.
func (s *suite) cancelled(t *testing.T) {
	t.Parallel()
	reason := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if h := ask(ctx, t, s.model(t, "m1", says("")), question()); !errors.Is(h.err, reason) || h.failure() != nil {
		t.Errorf("before the answer: %v", h.err)
	}
	events := s.Stream(s.samples()["text"])
	ctx, cancel = context.WithCancelCause(t.Context())
	w := says("")
	w.body = func(ctx context.Context) io.Reader {
		return io.MultiReader(strings.NewReader(strings.Join(events[:len(events)-s.Trailing-1], "")), waiting{ctx})
	}
	var last error
	for d, err := range s.model(t, "m1", w).Stream(ctx, question()) {
		if last = err; d.Text != "" {
			cancel(reason)
		}
	}
	if !errors.Is(last, reason) {
		t.Errorf("in the middle: %v", last)
	}
	cancel(nil)
}

// waiting is a connection on which nothing comes any more.
type waiting struct{ ctx context.Context }

// Read implements io.Reader.
func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// left: a caller that wants no more, at whichever delta, gets no more, and the response is
// closed.
func (s *suite) left(t *testing.T) {
	t.Parallel()
	for name, a := range s.samples() {
		for stop := 1; ; stop++ {
			w, n := says(strings.Join(s.Stream(a), "")), 0
			for range s.model(t, "m1", w).Stream(t.Context(), question()) {
				if n++; n == stop {
					break
				}
			}
			if w.closed != 1 {
				t.Errorf("%s, left after %d: closed %d times", name, stop, w.closed)
			}
			if n < stop {
				break
			}
		}
	}
}

// signed returns a request after an answer with signatures, and those.
func (s *suite) signed(t *testing.T) (*holdfast.ModelRequest, []string) {
	t.Helper()
	a := s.samples()["parallel calls"]
	var signatures []string
	if s.Signs {
		a.Signature = "signature-of-reasoning+/="
		signatures = append(signatures, a.Signature)
	}
	if s.SignsCalls {
		a.Calls[0].Signature = "signature-of-a-call+/="
		signatures = append(signatures, a.Calls[0].Signature)
	}
	h := s.reply(t, strings.Join(s.Stream(a), ""))
	next := question()
	answer := holdfast.Message{ID: "a1", Role: holdfast.RoleAssistant, Text: h.text}
	if h.reasoning+h.secret != "" {
		next.Messages = append(next.Messages,
			holdfast.Message{ID: "r1", Role: holdfast.RoleReasoning, Text: h.reasoning, EncryptedValue: h.secret})
	}
	for i, c := range a.Calls {
		answer.Calls = append(answer.Calls, holdfast.ToolCall{
			ID:             c.ID,
			Name:           c.Name,
			Arguments:      json.RawMessage(strings.Join(c.Arguments, "")),
			EncryptedValue: h.secrets[i],
		})
	}
	next.Messages = append(next.Messages, answer)
	for _, c := range a.Calls {
		next.Messages = append(next.Messages,
			holdfast.Message{ID: "t" + c.ID, Role: holdfast.RoleTool, CallID: c.ID, Text: "seen " + c.ID})
	}
	return next, signatures
}

// secrets: what the provider needs back of its answers comes back unchanged to the same
// model, and never to another.
func (s *suite) secrets(t *testing.T) {
	t.Parallel()
	next, signatures := s.signed(t)
	for _, model := range []string{"m1", "m2"} {
		w := says(strings.Join(s.Stream(s.samples()["text"]), ""))
		if h := ask(t.Context(), t, s.model(t, model, w), next); h.err != nil {
			t.Fatal(h.err)
		}
		for _, signature := range signatures {
			if got, want := strings.Contains(w.asked[0], signature), model == "m1"; got != want {
				t.Errorf("the model %s is sent %s: %v\n%s", model, signature, got, w.asked[0])
			}
		}
		if strings.Count(w.asked[0], "seen c") != 3 || strings.Contains(w.asked[0], "me see") {
			t.Errorf("the request lacks results, or has more than it should:\n%s", w.asked[0])
		}
	}
}

// refused: a provider that does not take its secrets back is asked again without them, once;
// any other refusal stands.
func (s *suite) refused(t *testing.T) {
	t.Parallel()
	next, signatures := s.signed(t)
	for _, said := range append(slices.Clone(s.Refusing), "something else is wrong") {
		for again := range 2 {
			asked := 0
			m, err := s.New("m1", Key, Replies(func(r *http.Request) (int, string) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				for _, signature := range signatures {
					if sent := strings.Contains(string(body), signature); sent != (asked == 0) {
						t.Errorf("%s: request %d has %s: %v", said, asked, signature, sent)
					}
				}
				if asked++; asked > 1+again {
					return http.StatusOK, strings.Join(s.Stream(s.samples()["text"]), "")
				}
				return http.StatusBadRequest, `{"error":{"type":"invalid_request_error","message":` + JSON(said) + `}}`
			}))
			if err != nil {
				t.Fatal(err)
			}
			h := ask(t.Context(), t, m, next)
			e, fails := h.failure(), again == 1 || !slices.Contains(s.Refusing, said)
			if fails && (e == nil || e.Kind != failure.Invalid) || !fails && h.err != nil {
				t.Errorf("%s, %d times: %s, %v", said, 1+again, h, h.err)
			}
		}
	}
}

// bytes: the same request has the same bytes, or else the provider's cache of prefixes
// would be useless.
func (s *suite) bytes(t *testing.T) {
	t.Parallel()
	w := says(strings.Join(s.Stream(s.samples()["text"]), ""))
	for range 3 {
		if h := ask(t.Context(), t, s.model(t, "m1", w), question()); h.err != nil {
			t.Fatal(h.err)
		}
	}
	if len(w.asked) != 3 || w.asked[0] != w.asked[1] || w.asked[1] != w.asked[2] || len(w.asked[0]) == 0 {
		t.Errorf("%q", w.asked)
	}
}

// Refusals are responses that mean the same from every provider; body is an error in the
// provider's form with this type.
func Refusals(body func(kind string) string) []Refusal {
	return []Refusal{
		{http.StatusServiceUnavailable, nil, "<html>busy KEY</html>", failure.Overloaded},
		{http.StatusBadGateway, map[string]string{"Retry-After": "2"}, "", failure.Overloaded},
		{
			http.StatusTooManyRequests,
			map[string]string{"Retry-After": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)},
			body("slow down, KEY"),
			failure.Rate,
		},
		{http.StatusUnauthorized, nil, body("wrong key KEY"), failure.Auth},
		{http.StatusNotFound, nil, body("which model?"), failure.Auth},
		{http.StatusPaymentRequired, nil, body("pay"), failure.Quota},
		{http.StatusRequestEntityTooLarge, nil, body("private prompt"), failure.TooLong},
		{http.StatusBadRequest, nil, body("what? private prompt KEY"), failure.Invalid},
		{http.StatusUnprocessableEntity, nil, "", failure.Invalid},
	}
}
