package scripted

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// said is an answer assembled from its deltas.
type said struct {
	text, reasoning string
	calls           []holdfast.ToolCall
	usage           *holdfast.Usage
	finish          holdfast.FinishReason
	err             error
	deltas          int
}

func listen(t *testing.T, m holdfast.Model, req *holdfast.ModelRequest) said {
	t.Helper()
	var s said
	var text strings.Builder
	for d, err := range m.Stream(t.Context(), req) {
		if s.finish != "" {
			t.Error("a delta after the last one")
		}
		s.deltas++
		text.WriteString(d.Text)
		s.reasoning += d.Reasoning
		if c := d.Call; c != nil {
			if c.Index == len(s.calls) && c.Name != "" {
				s.calls = append(s.calls, holdfast.ToolCall{ID: c.ID, Name: c.Name})
			}
			s.calls[c.Index].Arguments = append(s.calls[c.Index].Arguments, c.Arguments...)
		}
		if d.Usage != nil {
			s.usage = d.Usage
		}
		s.finish, s.err = d.Finish, err
	}
	s.text = text.String()
	return s
}

func tools(names ...string) []holdfast.ToolSpec {
	if names == nil {
		names = []string{
			"current_time",
			"calculate",
			"wait",
			"lookup",
			"ask_person",
			"update_plan",
			"charge_card",
			"show_map",
		}
	}
	out := make([]holdfast.ToolSpec, len(names))
	for i, n := range names {
		out[i] = holdfast.ToolSpec{Name: n, Description: "does " + n}
	}
	return out
}

func userSays(text string) *holdfast.ModelRequest {
	return &holdfast.ModelRequest{
		Thread: "t", Run: "r", Tools: tools(),
		Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: text}},
	}
}

// proceed adds an answer and the results of its calls to the history.
func proceed(req *holdfast.ModelRequest, s said, result func(c holdfast.ToolCall) string) {
	calls := slices.Clone(s.calls)
	var results []holdfast.Message
	for i := range calls {
		calls[i].ID = fmt.Sprintf("%s-%d", calls[i].ID, req.Iteration)
		results = append(results, holdfast.Message{Role: holdfast.RoleTool, CallID: calls[i].ID,
			Text: result(calls[i])})
	}
	if s.reasoning != "" {
		req.Messages = append(req.Messages, holdfast.Message{Role: holdfast.RoleReasoning, Text: s.reasoning})
	}
	req.Messages = append(req.Messages, holdfast.Message{Role: holdfast.RoleAssistant, Text: s.text, Calls: calls})
	req.Messages = append(req.Messages, results...)
	req.Iteration++
}

// converse lets the model work until it makes no more calls.
func converse(t *testing.T, req *holdfast.ModelRequest, result func(c holdfast.ToolCall) string) []said {
	t.Helper()
	m := New(Options{})
	var out []said
	for {
		s := listen(t, m, req)
		out = append(out, s)
		for _, c := range s.calls {
			if !json.Valid(c.Arguments) && s.finish != holdfast.FinishLength {
				t.Fatalf("the arguments of %s are not JSON: %s", c.Name, c.Arguments)
			}
		}
		if len(s.calls) == 0 || len(out) > 2000 {
			return out
		}
		proceed(req, s, result)
	}
}

func ok(holdfast.ToolCall) string { return "ok" }

func TestAnswersWithoutTools(t *testing.T) {
	tests := []struct{ user, want string }{
		{"Good morning", "“Good morning”"},
		{"Good morning", "help"},
		{"", "Hello!"},
		{"help", Help},
		{"Help!", Help},
		{"I need help with cooking", "You said"},
		{"think about cheese", "about cheese"},
		{"think", "nothing in particular"},
		{
			"time flies",
			"You said",
		},
		{"planning is hard", "You said"},
		{"what is love", "You said"},
		{"wait, what?", "You said"},
		{"tools", "8 tools"},
		{"tools", "show_map: does show_map"},
		{"slow 3", "word-1 word-2 word-3"},
		{"long 99999999999999999999", "word-100000"},
		{"context", "1 messages"},
		{"use show_map {", "a } is missing"},
		{"use {}", "no tool's name"},
		{"use teleport", "the tool teleport"},
	}
	for _, tt := range tests {
		got := listen(t, New(Options{}), userSays(tt.user))
		if !strings.Contains(got.text, tt.want) || got.finish != holdfast.FinishStop || got.err != nil ||
			len(got.calls) > 0 {
			t.Errorf("%q: got %q, %s, %v; want %q in it", tt.user, got.text, got.finish, got.err, tt.want)
		}
	}
	if got := listen(t, New(Options{}), userSays("think of a number")); got.reasoning == "" {
		t.Error("think: no reasoning")
	}
	if got := listen(t, New(Options{}), userSays("hello there you")); got.deltas < 10 {
		t.Errorf("an answer in %d deltas is not streamed word by word", got.deltas)
	}
}

func TestAnswersToWhatIsNotText(t *testing.T) {
	req := &holdfast.ModelRequest{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Parts: []holdfast.Part{
		{Type: holdfast.PartText, Text: "Look"}, {Type: holdfast.PartImage, Source: &holdfast.Source{}},
	}}}}
	if got := listen(t, New(Options{}), req); !strings.Contains(got.text, "“Look” (and 1 attachments") {
		t.Errorf("got %q", got.text)
	}
	if got := listen(t, New(Options{}), &holdfast.ModelRequest{}); got.finish != holdfast.FinishStop {
		t.Errorf("without a user message: got %+v", got)
	}
}

func TestContextIsTold(t *testing.T) {
	req := userSays("context")
	req.Instructions = []string{"Be kind."}
	req.Context = []holdfast.ContextItem{{Description: "page", Value: "home"}}
	req.ForwardedProps = json.RawMessage(`{"a":1}`)
	got := listen(t, New(Options{}), req).text
	for _, want := range []string{"instructions: Be kind.", "page: home", `{"a":1}`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

func TestOneCallAndAnAnswer(t *testing.T) {
	tests := []struct{ user, tool, args, result, want string }{
		{"time", "current_time", `{}`, "noon", "current_time: noon"},
		{"What time is it in Asia/Tokyo?", "current_time", `{"timezone":"Asia/Tokyo"}`, "noon", "noon"},
		{"calculate 2 * (3 + 4)", "calculate", `{"expression":"2 * (3 + 4)"}`, "14", "calculate: 14"},
		{"what is 6*7?", "calculate", `{"expression":"6*7"}`, "42", "42"},
		{"sum 1 + 2", "calculate", `{"expression":"1 + 2"}`, "3", "3"},
		{"wait 2.5 seconds", "wait", `{"seconds":2.5}`, "Waited 2.5 seconds.", "Waited 2.5"},
		{"lookup fence", "lookup", `{"term":"fence"}`, "it fences", "it fences"},
		{"ask me How are you?", "ask_person", `{"question":"How are you?"}`, "Fine", "You answered: “Fine”"},
		{
			"ask me",
			"ask_person",
			`{"question":"What is your favourite colour?"}`,
			"No result: the person declined to answer.",
			"I got no answer",
		},
		{
			"ask me to choose tea, coffee or water.",
			"ask_person",
			`{"choices":["tea","coffee","water"],"question":"Which one do you choose?"}`,
			"tea",
			"tea",
		},
		{`use show_map {"place": "Rome"}`, "show_map", `{"place": "Rome"}`, "shown", "show_map: shown"},
		{
			`use show_map`,
			"show_map",
			`{}`,
			"No result: the call was not answered.",
			"show_map gave no proper result (No result: the call was not answered.)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.user, func(t *testing.T) {
			got := converse(t, userSays(tt.user), func(holdfast.ToolCall) string { return tt.result })
			if len(got) != 2 || len(got[0].calls) != 1 || got[0].finish != holdfast.FinishToolCalls {
				t.Fatalf("got %+v, want one call and an answer", got)
			}
			if c := got[0].calls[0]; c.ID != "call_0" || c.Name != tt.tool || string(c.Arguments) != tt.args {
				t.Errorf("got %s %s", c.Name, c.Arguments)
			}
			if !strings.Contains(got[1].text, tt.want) {
				t.Errorf("got %q, want %q in it", got[1].text, tt.want)
			}
		})
	}
}

func TestUseCallsSeveralTools(t *testing.T) {
	got := converse(t, userSays(`use show_map {"a":{"b":"} and {"}} and calculate {"expression":"1"}, lookup `+
		`and use wait {"seconds":1}`), ok)
	want := []string{
		`show_map {"a":{"b":"} and {"}}`,
		`calculate {"expression":"1"}`,
		`lookup {}`,
		`wait {"seconds":1}`,
	}
	for i, c := range got[0].calls {
		if i >= len(want) || c.Name+" "+string(c.Arguments) != want[i] {
			t.Errorf("call %d: got %s %s", i, c.Name, c.Arguments)
		}
	}
	if len(got[0].calls) != len(want) {
		t.Errorf("got %d calls", len(got[0].calls))
	}
}

func TestPlanGoesOnFromTheHistory(t *testing.T) {
	for _, n := range []int{1, 7, 25} {
		req := userSays(fmt.Sprintf("Plan %d steps, please!", n))
		// Earlier turns must not count.
		req.Messages = append([]holdfast.Message{
			{Role: holdfast.RoleUser, Text: "time"},
			{
				Role: holdfast.RoleAssistant,
				Calls: []holdfast.ToolCall{
					{ID: "x", Name: "current_time"},
				},
			},
			{Role: holdfast.RoleTool, CallID: "x", Text: "noon"},
		}, req.Messages...)
		got := converse(t, req, ok)
		if len(got) != n+1 {
			t.Fatalf("plan %d: got %d answers", n, len(got))
		}
		if got[0].reasoning == "" {
			t.Errorf("plan %d: no reasoning in the first step", n)
		}
		for i, s := range got[:n] {
			if want := fmt.Sprintf("Step %d of %d", i+1, n); !strings.Contains(s.text, want) || len(s.calls) < 2 {
				t.Errorf("got %q with %d calls, want %q", s.text, len(s.calls), want)
			}
		}
		if end := got[n].text; !strings.Contains(end, fmt.Sprintf("All %d steps are done", n)) || len(end) > 2000 {
			t.Errorf("got %q", end)
		}
		var plan struct{ Steps []struct{ Done bool } }
		if err := json.Unmarshal(got[n-1].calls[1].Arguments, &plan); err != nil || len(plan.Steps) != min(n, 10) {
			t.Errorf("plan %d: got %s, %v", n, got[n-1].calls[1].Arguments, err)
		}
		for i, s := range plan.Steps {
			if !s.Done {
				t.Errorf("plan %d: line %d is not done at the end", n, i)
			}
		}
	}
}

func TestParallel(t *testing.T) {
	got := converse(t, userSays("parallel 7"), ok)
	if len(got) != 2 || len(got[0].calls) != 7 {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(got[1].text, "All 7 calls") {
		t.Errorf("got %q", got[1].text)
	}
}

func TestCharge(t *testing.T) {
	got := converse(t, userSays("charge 3"), func(c holdfast.ToolCall) string {
		if strings.Contains(string(c.Arguments), "2") {
			return "Outcome unknown: the server died while this call was running."
		}
		return "Charged."
	})
	if len(got) != 4 || string(got[2].calls[0].Arguments) != `{"amount":3,"currency":"EUR"}` {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(got[3].text, "charge_card gave no proper result (Outcome unknown") {
		t.Errorf("got %q", got[3].text)
	}
	req := userSays("charge 3")
	req.Tools = tools("wait")
	if got := listen(t, New(Options{}), req); !strings.Contains(got.text, "--demo-journal") {
		t.Errorf("without the tool: got %q", got.text)
	}
}

func TestBadArgsAreCorrected(t *testing.T) {
	got := converse(t, userSays("bad args"), func(c holdfast.ToolCall) string {
		if strings.Contains(string(c.Arguments), "expression") {
			return "42"
		}
		return `"expression" is missing`
	})
	if len(got) != 3 || !strings.Contains(got[1].text, `"expression" is missing`) ||
		!strings.Contains(got[2].text, "6 * 7 is 42") {
		t.Errorf("got %+v", got)
	}
}

func TestLengthIsCutOffInACall(t *testing.T) {
	got := converse(t, userSays("length"), func(holdfast.ToolCall) string {
		return "Not started: the answer was cut off."
	})
	if len(got) != 2 || got[0].finish != holdfast.FinishLength || json.Valid(got[0].calls[0].Arguments) {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(got[1].text, "Not started") {
		t.Errorf("got %q", got[1].text)
	}
}

func TestFailures(t *testing.T) {
	var m *holdfast.ModelError
	got := listen(t, New(Options{}), userSays("fail"))
	if !errors.As(got.err, &m) || m.Retryable || m.Public == "" || got.text == "" {
		t.Errorf("fail: got %+v", got)
	}
	req := userSays("flaky")
	if got := listen(t, New(Options{}), req); !errors.As(got.err, &m) || !m.Retryable || got.text == "" {
		t.Errorf("flaky 0: got %+v", got)
	}
	req.Attempt = 1
	if got := listen(t, New(Options{}), req); got.err != nil || got.finish != "" || got.text == "" {
		t.Errorf("flaky 1: got %+v", got)
	}
	req.Attempt = 2
	if got := listen(t, New(Options{}), req); got.err != nil || got.finish != holdfast.FinishStop {
		t.Errorf("flaky 2: got %+v", got)
	}
}

func TestToolsThatAreMissing(t *testing.T) {
	for _, user := range []string{"plan 3", "parallel 2", "wait 1", "ask me", "time", "calculate 1", "lookup run",
		"bad args", "length"} {
		req := userSays(user)
		req.Tools = tools("show_map")
		if got := listen(t, New(Options{}), req); len(got.calls) > 0 ||
			!strings.Contains(got.text, "I was not given it") {
			t.Errorf("%s: got %+v", user, got)
		}
	}
}

func TestUsage(t *testing.T) {
	req := userSays("one two three")
	req.Instructions = []string{"four five"}
	a, b := listen(t, New(Options{}), req), listen(t, New(Options{}), req)
	u := a.usage
	if u == nil || u.Provider != "holdfast" || u.Model != "demo" || *u.InputTokens != 5 ||
		*u.OutputTokens != count(a.text) || *u.TotalTokens != *u.InputTokens+*u.OutputTokens {
		t.Errorf("got %+v", u)
	}
	if *b.usage.TotalTokens != *u.TotalTokens || a.text != b.text {
		t.Error("the same request got two answers")
	}
}

func TestDelays(t *testing.T) {
	took := func(t *testing.T, user string) time.Duration {
		begun := time.Now()
		listen(t, New(Options{Delay: 20 * time.Millisecond}), userSays(user))
		return time.Since(begun)
	}
	synctest.Test(t, func(t *testing.T) {
		if d := took(t, "slow 60"); d != 12*time.Second {
			t.Errorf("slow 60 took %s", d)
		}
		if d := took(t, "long 500"); d != 0 {
			t.Errorf("long 500 took %s", d)
		}
		if d := took(t, "hello"); d < 100*time.Millisecond {
			t.Errorf("a short answer took %s", d)
		}
	})
}

func TestContextEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var last error
		for _, err := range New(Options{Delay: time.Minute}).Stream(ctx, userSays("slow")) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("got %v", last)
		}
	})
}

func TestJournal(t *testing.T) {
	var journal bytes.Buffer
	m := New(Options{Journal: &journal})
	req := userSays("hi")
	req.Thread, req.Iteration, req.Attempt = "a b", 4, 1
	listen(t, m, req)
	for range m.Stream(t.Context(), userSays("hi")) {
		break
	}
	listen(t, m, userSays("fail"))
	req = userSays("flaky")
	req.Attempt = 1
	listen(t, m, req)
	const want = `model start thread="a b" run=r iteration=4 attempt=1
model end thread="a b" run=r iteration=4 attempt=1 outcome=stop
model start thread=t run=r iteration=0 attempt=0
model end thread=t run=r iteration=0 attempt=0 outcome=stopped
model start thread=t run=r iteration=0 attempt=0
model end thread=t run=r iteration=0 attempt=0 outcome=failed
model start thread=t run=r iteration=0 attempt=1
model end thread=t run=r iteration=0 attempt=1 outcome=truncated
`
	if journal.String() != want {
		t.Errorf("got\n%s", journal.String())
	}
	if got := listen(t, New(Options{Journal: broken{}}), userSays("hi")); got.err == nil {
		t.Error("a journal that cannot be written: no error")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// FuzzAnswer: whatever the user says, the model gives an answer that ends.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"plan 5", `use a {"b":"é"} and c`, "ask me to choose ,", "length", "what is 2+2",
		"think\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, user string) {
		got := converse(t, userSays(user), ok)
		end := got[len(got)-1]
		if end.finish != holdfast.FinishStop && end.err == nil &&
			!strings.HasPrefix(end.text, "This is the second try") {
			t.Errorf("%q: got %+v", user, end)
		}
	})
}

// TestForms: an answer has the form that is asked for, unless it is to have none; while it
// calls tools it is free.
func TestForms(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	ask := func(text string, form *holdfast.Output) said {
		return listen(t, m, &holdfast.ModelRequest{
			Tools:    tools(),
			Output:   form,
			Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: text}},
		})
	}
	form := &holdfast.Output{
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"},` +
			`"sure":{"type":"boolean"}` +
			`,"list":{"type":"array"},"mood":{"enum":["calm"]}}}`),
	}
	if got := ask("slow 2", form).text; got != `{"list":[],"mood":"calm","n":2,"sure":true,"text":"word-1 word-2"}` {
		t.Error(got)
	}
	for text, f := range map[string]*holdfast.Output{"misfit": form, "slow 2": nil, "parallel 2": form} {
		if got := ask(text, f).text; json.Valid([]byte(got)) {
			t.Errorf("%s: %s", text, got)
		}
	}
	again := &holdfast.ModelRequest{Output: form, Tail: 2, Messages: []holdfast.Message{
		{
			Role: holdfast.RoleUser,
			Text: "misfit",
		},
		{Role: holdfast.RoleAssistant, Text: "no"},
		{Role: holdfast.RoleUser, Text: "it is not JSON"},
	}}
	if got := listen(t, m, again).text; !json.Valid([]byte(got)) {
		t.Errorf("asked again: %s", got)
	}
}

// TestPaint: the image is a whole one.
func TestPaint(t *testing.T) {
	t.Parallel()
	var media []*holdfast.Part
	for d, err := range New(Options{}).Stream(t.Context(),
		&holdfast.ModelRequest{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: "paint the sea"}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Media != nil {
			media = append(media, d.Media)
		}
	}
	if len(media) != 1 || media[0].Type != holdfast.PartImage || media[0].Source.MIMEType != "image/png" {
		t.Fatalf("%+v", media)
	}
	data, err := base64.StdEncoding.DecodeString(media[0].Source.Value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
}

// TestToolsAreChosen: the model calls what it must call, whatever it was told, and nothing if it
// must not.
func TestToolsAreChosen(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"suggestions":{"type":"array","items":{"type":"object",
		"properties":{"title":{"type":"string"},"message":{"type":"string"},"kind":{"enum":["a","b"]}},"required":["title","message","kind"]}},"more":{"type":"number"}},"required":["suggestions"]}`)
	req := &holdfast.ModelRequest{
		Messages: []holdfast.Message{
			{Role: holdfast.RoleUser, Text: "charge 1"},
		},
		ToolChoice: "required",
		ChosenTool: "suggest",
		Tools:      append(tools("charge_card"), holdfast.ToolSpec{Name: "suggest", Parameters: schema}),
	}
	m := New(Options{})
	s := listen(t, m, req)
	const want = `{"suggestions":[{"kind":"a","message":"plan 5 steps","title":"A plan of 5 ` +
		`steps"},{"kind":"b","message":"calculate 6 * 7","title":"6 × 7"}]}`
	if len(s.calls) != 1 || s.calls[0].Name != "suggest" || string(s.calls[0].Arguments) != want ||
		s.finish != holdfast.FinishToolCalls {
		t.Errorf("got %+v", s)
	}
	req.ToolChoice, req.ChosenTool = "none", ""
	if s := listen(t, m, req); len(s.calls) > 0 || s.text == "" || s.finish != holdfast.FinishStop {
		t.Errorf("got %+v", s)
	}
	req.ToolChoice = "required"
	if s := listen(t, m, req); len(s.calls) != 1 || s.calls[0].Name != "charge_card" {
		t.Errorf("the call that it makes anyway will do, got %+v", s)
	}
	req.Messages[0].Text = "hello"
	req.Tools = append(req.Tools, holdfast.ToolSpec{Name: "look", Effect: holdfast.EffectPure})
	if s := listen(t, m, req); len(s.calls) != 1 || s.calls[0].Name != "look" || string(s.calls[0].Arguments) != "{}" {
		t.Errorf("one without effects is preferred, got %+v", s)
	}
}
