// Package cuts cuts a provider's stream at every byte, through a whole engine: the run
// falls back to a model of another provider, and whatever was shown of the answer that
// broke off, the conversation is as if it had never begun. A provider's test plugs in its
// client and a fake of the provider, as in the conformance suite.
package cuts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
	"github.com/holdfast-agents/holdfast/store"
)

// every is the environment variable with which every position is tried; without it, a
// sample of about sampled positions of each stream is.
const (
	every   = "HOLDFAST_MODEL_CUTS"
	sampled = 25
	// batch is how many positions share an engine.
	batch = 200
)

// The two signatures that the first provider needs back, and its reasoning: none of them
// may reach the other.
const (
	signature     = "signature-of-reasoning+/="
	callSignature = "signature-of-a-call+/="
	private       = "the first model thinks so"
)

// Other is the provider to which the run falls back.
type Other struct {
	// New makes a model whose provider is asked through the client.
	New func(client *http.Client) (holdfast.Model, error)
	// Stream writes a whole answer in the provider's form.
	Stream func(modeltest.Answer) []string
	// StrictIDs: the provider takes only some characters in ids of calls.
	StrictIDs bool
}

// contents are the answers that are cut.
func contents(p modeltest.Provider) map[string]modeltest.Answer {
	all := map[string]modeltest.Answer{
		"text": {Text: []string{"Hel", "lo \u00e9\u2028\"\\\n", "<world>"}, Finish: holdfast.FinishStop},
		"parallel calls": {Text: []string{"I look."}, Finish: holdfast.FinishToolCalls, Calls: []modeltest.Call{
			{
				ID:        "n1",
				Name:      "look",
				Arguments: []string{`{"x":`, `3}`},
			},
			{ID: "n2", Name: "look", Arguments: []string{`{"x`, `":4}`}},
		}},
	}
	if p.Thinks {
		all["reasoning"] = modeltest.Answer{
			Reasoning: []string{"let ", "me see"},
			Text:      []string{"done"},
			Finish:    holdfast.FinishStop,
		}
		if p.Signs {
			a := all["reasoning"]
			a.Signature = "another-signature+/="
			all["reasoning"] = a
		}
	}
	return all
}

// Run cuts the provider's stream, and logs a row of a table for each kind of content.
func Run(t *testing.T, name string, p modeltest.Provider, other Other) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	for content, a := range contents(p) {
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(len(content))))
			s := &suite{Provider: p, other: other, answer: a, random: random}
			s.prepare()
			positions := s.positions()
			wrong := 0
			for part := range slices.Chunk(positions, batch) {
				wrong += s.run(t, part)
			}
			t.Logf("seed %d\n| %s | %s | %d of %d | %d |", seed, name, content, len(positions), len(s.whole), wrong)
		})
	}
}

// suite is one answer of a provider, and where it is cut.
type suite struct {
	modeltest.Provider
	other  Other
	answer modeltest.Answer
	random *rand.Rand

	whole    string // the stream
	complete int    // how much of it makes the answer complete
	before   string // the stream of the answer before it
	// left and right are the histories with the first model's answer, and with the other's.
	left, right []string
	calls       map[bool][]string // the calls that are made, by whether the answer was complete
}

// prepare makes the streams, and what may come of them.
func (s *suite) prepare() {
	events := s.Stream(s.answer)
	s.whole = strings.Join(events, "")
	s.complete = len(strings.TrimRight(strings.Join(events[:len(events)-s.Trailing], ""), "\n"))
	first := modeltest.Answer{Finish: holdfast.FinishToolCalls, Calls: []modeltest.Call{
		// Not every provider takes such ids.
		{
			ID:        "odd:1",
			Name:      "look",
			Arguments: []string{`{"x":1}`},
		},
		{ID: "odd.2", Name: "look", Arguments: []string{`{"x":2}`}},
	}}
	start := []string{"user:go"}
	if s.Thinks {
		first.Reasoning = []string{private}
		start = append(start, "reasoning:"+private)
	}
	if s.Signs {
		first.Signature = signature
	}
	if s.SignsCalls {
		first.Calls[0].Signature = callSignature
	}
	s.before = strings.Join(s.Stream(first), "")
	start = append(start, `assistant: look{"x":1} look{"x":2}`, "tool:seen 1", "tool:seen 2")
	made := []string{"look 1", "look 2"}
	s.calls = map[bool][]string{true: made, false: made}
	left, right := slices.Clone(start), slices.Clone(start)
	if len(s.answer.Reasoning) > 0 {
		left = append(left, "reasoning:"+strings.Join(s.answer.Reasoning, ""))
	}
	left = append(left, "assistant:"+strings.Join(s.answer.Text, ""))
	if len(s.answer.Calls) > 0 {
		left[len(left)-1] += ` look{"x":3} look{"x":4}`
		left = append(left, "tool:seen 3", "tool:seen 4", "assistant:the end")
		right = append(right, `assistant: look{"x":8} look{"x":9}`, "tool:seen 8", "tool:seen 9")
		s.calls = map[bool][]string{
			true:  append(slices.Clone(made), "look 3", "look 4"),
			false: append(slices.Clone(made), "look 8", "look 9"),
		}
	}
	s.left, s.right = left, append(right, "assistant:done by two")
}

// positions returns where the stream is cut.
func (s *suite) positions() []int {
	step := 1
	if os.Getenv(every) == "" {
		step = max(1, len(s.whole)/sampled)
	}
	var out []int
	for at := s.random.IntN(step); at < len(s.whole); at += step {
		out = append(out, at)
	}
	if step > 1 { // where it matters most
		out = append(out, s.complete-1, min(s.complete, len(s.whole)-1))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wire is a provider's end: it answers the n-th request of a run.
type wire struct {
	mu    sync.Mutex
	asked []string
	say   func(n int) io.Reader
}

// begin sets what is said in the next run.
func (w *wire) begin(say func(n int) io.Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.say = nil, say
}

// requests returns what was asked since begin.
func (w *wire) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.asked)
	w.asked = append(w.asked, string(body))
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Request:    r,
		Body:       io.NopCloser(w.say(n)),
	}, nil
}

// trial is one engine with its two models.
type trial struct {
	*suite
	t             *testing.T
	e             *looptest.Engine
	first, second wire
	made          looptest.Notebook
}

// run tries positions on an engine of their own, and returns how many went wrong.
func (s *suite) run(t *testing.T, positions []int) (wrong int) {
	tr := &trial{suite: s, t: t}
	first, err := s.New("m1", modeltest.Key, &http.Client{Transport: &tr.first})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.other.New(&http.Client{Transport: &tr.second})
	if err != nil {
		t.Fatal(err)
	}
	look := holdfast.NewTool("look", "Looks.", func(_ context.Context, args struct {
		X int `json:"x"`
	}) (string, error) {
		tr.made.Note(fmt.Sprint("look ", args.X))
		return fmt.Sprint("seen ", args.X), nil
	}, holdfast.WithEffect(holdfast.EffectOnce))
	agent := holdfast.Agent{Name: "a", Model: first, Fallbacks: []holdfast.Model{second}, Tools: []holdfast.Tool{look}}
	tr.e = looptest.Start(t, memstore.New(), func(c *looptest.Config) {
		// Two tries, so that an answer is taken back by another of the same model too.
		c.ModelTries, c.Log = 2, slog.New(slog.DiscardHandler)
	}, agent)
	for _, at := range positions {
		if err := tr.at(at); err != nil {
			wrong++
			t.Errorf("cut at %d of %d: %v; the stream so far:\n%s", at, len(s.whole), err, s.whole[:at])
		}
	}
	tr.first.begin(nil)
	return wrong
}

// at cuts the stream at a position, and says what is wrong with what comes of it.
func (tr *trial) at(at int) error {
	again := tr.random.IntN(tr.complete) // where the second try breaks off
	tr.first.begin(func(n int) io.Reader {
		switch n {
		case 0:
			return strings.NewReader(tr.before)
		case 1:
			return strings.NewReader(tr.whole[:at])
		case 2:
			if at >= tr.complete { // after the calls of a complete answer
				return strings.NewReader(strings.Join(tr.Stream(modeltest.Answer{Text: []string{"the end"},
					Finish: holdfast.FinishStop}), ""))
			}
			return io.MultiReader(strings.NewReader(tr.whole[:again]), iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		return iotest.ErrReader(errors.New("a model that was left is asked again"))
	})
	tr.second.begin(func(n int) io.Reader {
		a := modeltest.Answer{Text: []string{"done ", "by two"}, Finish: holdfast.FinishStop}
		if n == 0 && len(tr.answer.Calls) > 0 {
			// It uses ids that the other model has used.
			a = modeltest.Answer{Finish: holdfast.FinishToolCalls, Calls: []modeltest.Call{
				{
					ID:        "n1",
					Name:      "look",
					Arguments: []string{`{"x":8}`},
				},
				{ID: "odd:1", Name: "look", Arguments: []string{`{"x":9}`}},
			}}
		}
		return strings.NewReader(strings.Join(tr.other.Stream(a), ""))
	})
	tr.made.Take()
	id := fmt.Sprint("t", at)
	reply, err := tr.e.Owner.Post(tr.t.Context(), looptest.Alice, "",
		looptest.RunInput(id, "r1", looptest.UserSays("u1", "go")))
	if err != nil {
		return err
	}
	return tr.judge(id, at, reply)
}

// judge says what is wrong with a run.
func (tr *trial) judge(id string, at int, reply *agui.Reply) error {
	whole := at >= tr.complete
	want := tr.right
	if whole {
		want = tr.left
	}
	if err := tr.shows(reply, want); err != nil {
		return err
	}
	// Clients from before 1.0 attach to what is stored.
	old, err := tr.e.Owner.Events(tr.t.Context(), looptest.Alice, id, "r1", store.Cursor{}, agui.DialectLegacy)
	if err != nil {
		return err
	}
	if err := tr.shows(old, want); err != nil {
		return fmt.Errorf("the older dialect: %w", err)
	}
	messages, err := tr.e.Messages(tr.t.Context(), looptest.Alice, id)
	if err != nil {
		return err
	}
	history, err := told(messages)
	if err != nil || !slices.Equal(history, want) {
		return fmt.Errorf("the history is %q, want %q (%w)", history, want, err)
	}
	made := tr.made.Take()
	slices.Sort(made)
	if !slices.Equal(made, tr.calls[whole]) {
		return fmt.Errorf("the calls %q were made, want %q", made, tr.calls[whole])
	}
	return tr.sent(whole)
}

// shows says what is wrong with a stream: it must be legal, and a client must show the
// history after it.
func (tr *trial) shows(reply *agui.Reply, want []string) error {
	var events []agui.Event
	for frames, err := range reply.Whole() {
		if err != nil {
			return err
		}
		for _, f := range frames {
			ev, err := agui.DecodeEvent(f.Data)
			if err != nil {
				return fmt.Errorf("frame %s: %w", f.Data, err)
			}
			events = append(events, ev)
		}
	}
	if err := agui.Verify(slices.Values(events)); err != nil {
		return fmt.Errorf("%w\n%s", err, looptest.Show(events))
	}
	shown := looptest.Reduce(append([]agui.Event{agui.MessagesSnapshot{Messages: []agui.Message{looptest.UserSays("u1",
		"go")}}}, events...))
	var screen []string
	for _, line := range want {
		text, calls := line, ""
		if strings.HasPrefix(line, "assistant:") {
			if i := strings.Index(line, " look{"); i >= 0 {
				text, calls = line[:i], line[i:]
			}
		}
		screen = append(screen, text)
		screen = append(screen, strings.Fields(calls)...)
	}
	// Reasoning that was taken back stays on the screen of a stock client until a snapshot
	// has other reasoning, which is so if the thread has none.
	if !tr.Thinks {
		shown = slices.DeleteFunc(shown, func(s string) bool { return strings.HasPrefix(s, "reasoning:") })
	}
	inOrder(shown)
	if !slices.Equal(shown, screen) {
		return fmt.Errorf("a client shows %q, want %q\n%s", shown, screen, looptest.Show(events))
	}
	return nil
}

// told returns a history as lines.
func told(messages []json.RawMessage) ([]string, error) {
	var out []string
	for _, raw := range messages {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		d, err := m.Domain()
		if err != nil {
			return nil, err
		}
		line := string(d.Role) + ":" + d.PlainText()
		for _, c := range d.Calls {
			line += " " + c.Name + string(c.Arguments)
		}
		out = append(out, line)
	}
	inOrder(out)
	return out, nil
}

// inOrder sorts results that follow each other: they stand as they were finished.
func inOrder(lines []string) {
	isResult := func(s string) bool { return strings.HasPrefix(s, "tool:") }
	for i := 0; i < len(lines); i++ {
		end := i
		for end < len(lines) && isResult(lines[end]) {
			end++
		}
		slices.Sort(lines[i:end])
		i = max(i, end-1)
	}
}

// Results by the ids of their calls, and what even a strict provider takes as an id.
var (
	validID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	sentIDs = regexp.MustCompile(`"(?:tool_use_id|tool_call_id|call_id)": ?"([^"]*)"`)
)

// sent says what is wrong with what the second provider was sent: it gets the results of
// the calls under their ids, and nothing that only the first one may have.
func (tr *trial) sent(whole bool) error {
	asked := tr.second.requests()
	if whole {
		if len(asked) > 0 {
			return errors.New("the second model was asked although the answer is complete")
		}
		return nil
	}
	if len(asked) == 0 || len(tr.first.requests()) != 3 {
		return fmt.Errorf("the models were asked %d and %d times", len(tr.first.requests()), len(asked))
	}
	for _, body := range asked {
		for _, secret := range []string{signature, callSignature, private, modeltest.Key} {
			if strings.Contains(body, secret) {
				return fmt.Errorf("the second provider is sent %q:\n%s", secret, body)
			}
		}
		if !strings.Contains(body, "seen 1") || !strings.Contains(body, "seen 2") {
			return fmt.Errorf("the second provider lacks results:\n%s", body)
		}
		ids := sentIDs.FindAllStringSubmatch(body, -1)
		if len(ids) < 2 {
			return fmt.Errorf("the second provider is sent %d ids of calls:\n%s", len(ids), body)
		}
		for _, id := range ids {
			if tr.other.StrictIDs && !validID.MatchString(id[1]) || strings.Count(body, `"`+id[1]+`"`) != 2 {
				return fmt.Errorf("the second provider is sent the id %q, which is not that of one "+
					"call and one result:\n%s", id[1], body)
			}
		}
	}
	return nil
}
