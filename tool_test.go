package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
)

func returns[Result any](v Result, err error) holdfast.Tool {
	return holdfast.NewTool("t", "", func(context.Context, struct{}) (Result, error) { return v, err })
}

func TestNewToolResults(t *testing.T) {
	failed := holdfast.ToolResult{Text: "no", Failed: true}
	parts := holdfast.ToolResult{Parts: []holdfast.Part{{Type: holdfast.PartText, Text: "x"}}}
	tests := []struct {
		name string
		tool holdfast.Tool
		want holdfast.ToolResult
	}{
		{"a string", returns("text, not \"JSON\"", nil), holdfast.ToolResult{Text: `text, not "JSON"`}},
		{"an empty string", returns("", nil), holdfast.ToolResult{}},
		{"a number", returns(42, nil), holdfast.ToolResult{Text: "42"}},
		{"a list", returns([]string{"a"}, nil), holdfast.ToolResult{Text: `["a"]`}},
		{"nothing", returns[any](nil, nil), holdfast.ToolResult{Text: "null"}},
		{"JSON", returns(json.RawMessage(`{"a": 1}`), nil), holdfast.ToolResult{Text: `{"a": 1}`}},
		{"a result", returns(failed, nil), failed},
		{"a result in parts", returns(parts, nil), parts},
	}
	for _, tt := range tests {
		got, err := tt.tool.Call(t.Context(), holdfast.ToolCall{})
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v", tt.name, got, err)
		}
	}
	if _, err := returns(make(chan int), nil).Call(t.Context(), holdfast.ToolCall{}); err == nil {
		t.Error("a channel cannot be written as JSON, but there is no error")
	}
}

func TestNewToolPassesErrorsOn(t *testing.T) {
	ask := &holdfast.Interrupt{Message: "sure?"}
	for _, want := range []error{errors.New("broken"), ask} {
		got, err := returns("a text that is lost", want).Call(t.Context(), holdfast.ToolCall{})
		if err != want || got.Text != "" {
			t.Errorf("got %+v, %v, want %v", got, err, want)
		}
	}
	if !strings.Contains(ask.Error(), "sure?") {
		t.Errorf("got %q", ask.Error())
	}
}

func TestNewToolSpec(t *testing.T) {
	f := func(context.Context, struct{}) (string, error) { return "", nil }
	got := holdfast.NewTool("name", "what it does", f).Spec()
	if got.Name != "name" || got.Description != "what it does" || got.Effect != holdfast.EffectIdempotent ||
		got.Timeout != 0 {
		t.Errorf("got %+v", got)
	}
	if want := `{"type":"object","properties":{},"additionalProperties":false}`; string(got.Parameters) != want {
		t.Errorf("got %s, want %s", got.Parameters, want)
	}
	got = holdfast.NewTool("name", "", f, holdfast.WithEffect(holdfast.EffectOnce), holdfast.WithTimeout(time.Second)).
		Spec()
	if got.Effect != holdfast.EffectOnce || got.Timeout != time.Second {
		t.Errorf("with options: got %+v", got)
	}
}

func TestNewToolArguments(t *testing.T) {
	type args struct {
		N    int      `json:"n,omitempty"`
		Tags []string `json:"tags,omitempty"`
	}
	ran := false
	tool := holdfast.NewTool("count", "", func(_ context.Context, a args) (args, error) {
		ran = true
		return a, nil
	})
	tests := []struct{ give, want, err string }{
		{``, `{}`, ``},
		{`{}`, `{}`, ``},
		{`{"n":3,"tags":null}`, `{"n":3}`, ``},
		{`null`, ``, `the arguments of count are not valid, nothing was run: null is null, but it must be an object`},
		{
			`{"n":`,
			``,
			`the arguments of count are not valid, nothing was run: it is not complete JSON: ` +
				`unexpected end of JSON input`,
		},
		{
			`{"n":"3","m":1}`,
			``,
			`the arguments of count are not valid, nothing was run: "m" is not a known member; /n: "3" is a string, ` +
				`but it must be an integer`,
		},
		{`{"n":99999999999999999999}`, ``, `the arguments of count cannot be read, nothing was run: `},
	}
	for _, tt := range tests {
		ran = false
		got, err := tool.Call(t.Context(), holdfast.ToolCall{Arguments: json.RawMessage(tt.give)})
		switch {
		case tt.err == "" && (err != nil || got.Text != tt.want):
			t.Errorf("%s: got %+v, %v", tt.give, got, err)
		case tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err) || ran):
			t.Errorf("%s: got %v, ran: %t", tt.give, err, ran)
		}
	}
}

func TestNewToolPanicsOnMistakes(t *testing.T) {
	panics := func(name string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	panics("no name", func() {
		holdfast.NewTool("", "", func(context.Context, struct{}) (string, error) { return "", nil })
	})
	panics("arguments that are no object", func() {
		holdfast.NewTool("t", "", func(context.Context, string) (string, error) { return "", nil })
	})
	panics("arguments that JSON cannot hold", func() {
		holdfast.NewTool("t", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
	})
}

func TestOutsideACall(t *testing.T) {
	if got := holdfast.CallFrom(t.Context()); got.ID != "" || got.Key != "" {
		t.Errorf("got %+v", got)
	}
	nothing := func(s json.RawMessage) (json.RawMessage, error) { return s, nil }
	if err := holdfast.UpdateState(t.Context(), nothing); !errors.Is(err, holdfast.ErrNoCall) {
		t.Errorf("got %v", err)
	}
	ctx := holdfast.ContextWithCall(t.Context(), holdfast.ToolCall{Key: "k"}, nil)
	if err := holdfast.UpdateState(ctx, nothing); !errors.Is(err, holdfast.ErrNoCall) {
		t.Errorf("without a place for updates: got %v", err)
	}
	if got := holdfast.CallFrom(ctx).Key; got != "k" {
		t.Errorf("got %q", got)
	}
}
