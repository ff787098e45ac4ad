package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

type weatherArgs struct {
	City string `json:"city" jsonschema:"the city's name"`
	Days int8   `json:"days,omitempty"`
}

type weather struct {
	City   string `json:"city"`
	Degree int    `json:"degree"`
}

func ExampleNewTool() {
	tool := holdfast.NewTool("get_weather", "Tells the weather.",
		func(_ context.Context, args weatherArgs) (weather, error) {
			return weather{City: args.City, Degree: 21}, nil
		}, holdfast.WithEffect(holdfast.EffectPure))
	fmt.Println(string(tool.Spec().Parameters))

	result, err := tool.Call(context.Background(), holdfast.ToolCall{Arguments: json.RawMessage(`{"city": "Rome"}`)})
	fmt.Println(result.Text, err)

	// The model gets all violations in one message, so it can correct all of them.
	_, err = tool.Call(context.Background(),
		holdfast.ToolCall{Arguments: json.RawMessage(`{"town": "Rome", "days": 500}`)})
	fmt.Println(err)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"the city's name"},"days":{"type":"integer","minimum":-128,"maximum":127}},"required":["city"],"additionalProperties":false}
	// {"city":"Rome","degree":21} <nil>
	// the arguments of get_weather are not valid, nothing was run: "city" is missing; "town" is not a known member; /days: 500 is more than the maximum 127
}

// A tool that asks a person before it acts. The run waits without holding
// anything; when the answer comes, the tool is called again.
func ExampleInterrupt() {
	type args struct {
		Path string `json:"path"`
	}
	remove := func(ctx context.Context, a args) (string, error) {
		answer := holdfast.CallFrom(ctx).Answer
		if answer == nil {
			return "", &holdfast.Interrupt{Reason: "confirmation", Message: "Delete " + a.Path + "?"}
		}
		if string(answer.Payload) != "true" {
			return "The person does not want it.", nil
		}
		return "Deleted " + a.Path + ".", nil
	}
	tool := holdfast.NewTool("delete", "Deletes a file.", remove, holdfast.WithEffect(holdfast.EffectOnce))

	call := holdfast.ToolCall{Arguments: json.RawMessage(`{"path": "/tmp/x"}`)}
	_, err := tool.Call(holdfast.ContextWithCall(context.Background(), call, nil), call)
	var ask *holdfast.Interrupt
	fmt.Println(errors.As(err, &ask), ask.Message)

	call.Answer = &holdfast.Answer{Payload: json.RawMessage(`true`)}
	result, err := tool.Call(holdfast.ContextWithCall(context.Background(), call, nil), call)
	fmt.Println(result.Text, err)
	// Output:
	// true Delete /tmp/x?
	// Deleted /tmp/x. <nil>
}

// A middleware that lets only some users call some tools.
func ExampleMiddleware() {
	guard := holdfast.Middleware{
		Name: "example.guard",
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if call.Name == "restart" && call.Principal.User != "admin" {
					return holdfast.ToolResult{Text: "Only admin may restart.", Failed: true}, nil
				}
				return next(ctx, tool, call)
			}
		},
	}
	restart := holdfast.NewTool("restart", "Restarts the machine.", func(context.Context, struct{}) (string, error) {
		return "Restarted.", nil
	})

	handler := guard.Tool(func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult,
		error) {
		return tool.Call(ctx, call)
	})
	for _, user := range []string{"guest", "admin"} {
		call := holdfast.ToolCall{Name: "restart", Principal: holdfast.Principal{User: user}}
		result, err := handler(context.Background(), restart, call)
		fmt.Println(result.Text, result.Failed, err)
	}
	// Output:
	// Only admin may restart. true <nil>
	// Restarted. false <nil>
}

// A model is a function that yields its answer piece by piece; the last piece
// says why it stopped.
func ExampleModelFunc() {
	echo := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			last := req.Messages[len(req.Messages)-1]
			for _, word := range strings.SplitAfter(last.PlainText(), " ") {
				if ctx.Err() != nil {
					yield(holdfast.Delta{}, context.Cause(ctx))
					return
				}
				if !yield(holdfast.Delta{Text: word}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	})

	req := &holdfast.ModelRequest{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: "one two"}}}
	for delta, err := range echo.Stream(context.Background(), req) {
		fmt.Printf("%q %q %v\n", delta.Text, delta.Finish, err)
	}
	// Output:
	// "one " "" <nil>
	// "two" "" <nil>
	// "" "stop" <nil>
}

// Shared state changes together with the result of the call that changes it.
func ExampleUpdateState() {
	type args struct {
		Item string `json:"item"`
	}
	tool := holdfast.NewTool("add_item", "Adds an item to the list.",
		func(ctx context.Context, a args) (string, error) {
			err := holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
				var items []string
				if len(state) > 0 {
					if err := json.Unmarshal(state, &items); err != nil {
						return nil, err
					}
				}
				return json.Marshal(append(items, a.Item))
			})
			return "added", err
		})

	state := json.RawMessage(`["milk"]`)
	call := holdfast.ToolCall{Arguments: json.RawMessage(`{"item": "bread"}`), State: state}
	ctx := holdfast.ContextWithCall(context.Background(), call, func(update holdfast.StateUpdate) {
		if next, err := update(state); err == nil {
			state = next
		}
	})
	result, err := tool.Call(ctx, call)
	fmt.Println(result.Text, err, string(state))
	// Output: added <nil> ["milk","bread"]
}

// A state belongs to the middleware that keeps it. It is stored with the thread, and
// a run that continues in another process finds it as it was.
func Example_states() {
	type count struct {
		Calls int `json:"calls"`
	}
	key := state.Register(state.Spec[count]{Name: "example.count", Scope: state.ScopeRun})
	limit := holdfast.Middleware{
		Name:   "example.limit",
		States: []holdfast.State{key},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				now, err := key.Update(ctx, func(c count) count { return count{c.Calls + 1} })
				if err != nil {
					return holdfast.ToolResult{}, err
				}
				if now.Calls > 2 {
					return holdfast.ToolResult{Text: "Two calls are enough.", Failed: true, NotRun: true}, nil
				}
				return next(ctx, tool, call)
			}
		},
	}
	look := holdfast.NewTool("look", "Looks around.", func(context.Context, struct{}) (string, error) {
		return "Nothing.", nil
	})
	handler := limit.Tool(func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult,
		error) {
		return tool.Call(ctx, call)
	})

	// The server makes this context; a test makes its own.
	states := state.NewLive(nil)
	ctx := state.ContextWith(context.Background(), states)
	for range 3 {
		result, err := handler(ctx, look, holdfast.ToolCall{Name: "look"})
		fmt.Println(result.Text, err)
	}
	stored, err := states.Now().MarshalJSON()
	fmt.Println(string(stored), err)
	// Output:
	// Nothing. <nil>
	// Nothing. <nil>
	// Two calls are enough. <nil>
	// {"schemaSignature":null,"schemaVersion":0,"stateVersions":null,"states":{"example.count":{"calls":3}}} <nil>
}

// Version 2 of a state counts by tool. A value stored by version 1 is migrated when
// it is first read.
func Example_migrate() {
	type v1 struct {
		Count int `json:"count"`
	}
	type v2 struct {
		Counts map[string]int `json:"counts"`
	}
	key := state.Register(state.Spec[v2]{
		Name:    "example.counts",
		Version: 2,
		Migrations: map[int]state.Migration{
			1: state.Migrate(func(old v1) (v2, error) { return v2{map[string]int{"all": old.Count}}, nil }),
		},
	})
	schema, err := state.NewSchema(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	old := state.SchemaInfo{Signature: "example.counts", Version: 1, StateVersions: map[string]int{"example.counts": 1}}
	states := schema.Restore(old, []state.Value{{Name: "example.counts", Version: 1,
		Data: json.RawMessage(`{"count":3}`)}}, nil)
	fmt.Println(schema.Compare(states).Changed)
	fmt.Println(key.Get(states))
	// Output:
	// [{example.counts 1 2}]
	// {map[all:3]} <nil>
}
