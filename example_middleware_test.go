package holdfast_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
)

// This file and example_deployments_test.go contain the code and the output that
// docs/middleware.md, docs/checkpointing.md and docs/state-evolution.md show;
// TestDocumentedCode compares them.

// Mail is what the middleware remembers about a thread.
type Mail struct {
	Sent int `json:"sent"`
}

var mailState = state.Register(state.Spec[Mail]{Name: "acme.mail"})

// MailLimit lets an agent send at most limit mails in a thread.
func MailLimit(limit int) holdfast.Middleware {
	return holdfast.Middleware{
		Name:   "acme.mail_limit",
		States: []holdfast.State{mailState},
		Batch: func(ctx context.Context, b *holdfast.Batch) error {
			mail, err := mailState.Load(ctx)
			if err != nil {
				return err
			}
			for i, call := range b.Calls {
				if call.Name != "send_mail" {
					continue
				}
				if mail.Sent++; mail.Sent > limit {
					b.Deny(i, fmt.Sprintf("Not sent: a conversation may send %d mails.", limit))
				}
			}
			_, err = mailState.Update(ctx, func(Mail) Mail { return mail })
			return err
		},
	}
}

// A hook is a function, and its caller makes the context: the server, or a test.
func Example_hookAlone() {
	m := MailLimit(2)
	states := state.NewLive(nil)
	ctx := state.ContextWith(context.Background(), states)
	batch := holdfast.NewBatch(&holdfast.Iteration{},
		[]holdfast.ToolCall{{Name: "send_mail"}, {Name: "look"}, {Name: "send_mail"}, {Name: "send_mail"}})
	if err := m.Batch(ctx, batch); err != nil {
		fmt.Println(err)
		return
	}
	for i, call := range batch.Calls {
		if result, _ := batch.Decided(i); result != nil {
			fmt.Println(call.Name, "-", result.Text)
			continue
		}
		fmt.Println(call.Name, "- runs")
	}
	fmt.Println(mailState.Get(states.Now()))
	// Output:
	// send_mail - runs
	// look - runs
	// send_mail - runs
	// send_mail - Not sent: a conversation may send 2 mails.
	// {3} <nil>
}

// AskFirst asks a person before each call of the tool.
func AskFirst(tool string) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "acme.ask_first",
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			for i, call := range b.Calls {
				if call.Name == tool {
					b.Ask(i, &holdfast.Interrupt{
						Reason: "acme:ask_first", Message: "May the agent call " + tool + "?",
						ResponseSchema: json.RawMessage(`{"type":"boolean"}`),
					})
				}
			}
			return nil
		},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, t holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if a := call.Answer; a != nil && a.Reason == "acme:ask_first" && string(a.Payload) != "true" {
					return holdfast.ToolResult{Text: "The person said no.", Failed: true, NotRun: true}, nil
				}
				return next(ctx, t, call)
			}
		},
	}
}

// A batch in which one call waits for a person while the other runs.
func ExampleBatch_Ask() {
	m := AskFirst("send_mail")
	batch := holdfast.NewBatch(&holdfast.Iteration{}, []holdfast.ToolCall{{Name: "send_mail"}, {Name: "look"}})
	if err := m.Batch(context.Background(), batch); err != nil {
		fmt.Println(err)
		return
	}
	for i, call := range batch.Calls {
		_, question := batch.Decided(i)
		fmt.Println(call.Name, question != nil)
	}
	call := m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Text: "sent"}, nil
	})
	for _, answer := range []string{"true", "false"} {
		result, err := call(context.Background(), nil, holdfast.ToolCall{
			Name: "send_mail", Answer: &holdfast.Answer{Reason: "acme:ask_first", Payload: json.RawMessage(answer)},
		})
		fmt.Println(result.Text, err)
	}
	// Output:
	// send_mail true
	// look false
	// sent <nil>
	// The person said no. <nil>
}

// mailKind lets an agents file name MailLimit.
var mailKind = holdfast.MiddlewareKind{
	Name: "acme.mailLimit",
	New: func(raw json.RawMessage) (holdfast.Middleware, error) {
		options := struct {
			Limit int `json:"limit"`
		}{Limit: 3}
		if err := holdfast.DecodeOptions(raw, &options); err != nil {
			return holdfast.Middleware{}, err
		}
		if options.Limit < 1 {
			return holdfast.Middleware{}, fmt.Errorf("limit is %d: write 1 or more", options.Limit)
		}
		return MailLimit(options.Limit), nil
	},
}

// An agents file names kinds of middleware; a mistake in their options is reported
// with its line and column.
func ExampleMiddlewareKind() {
	fmt.Print(loaded(`
agents:
  - name: helper
    model: demo
    middleware:
      - acme.mailLimit: {limit: 5}
      - circuitBreaker
      - toolPermission:
          rules:
            - {tool: "get_*", then: allow}
`))
	fmt.Print(loaded(`
agents:
  - name: helper
    model: demo
    middleware:
      - acme.mailLimit: {limits: 5}
      - acme.mailLimit: {limit: 0}
`))
	// Output:
	// acme.mail_limit
	// holdfast.circuit_breaker
	// holdfast.tool_permission
	// holdfast.yaml:6:26: acme.mailLimit has no option "limits"
	// holdfast.yaml:7:25: acme.mailLimit: limit is 0: write 1 or more
}

// loaded returns the names of the first agent's middleware, or what is wrong.
func loaded(text string) string {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err.Error()
	}
	loaded, err := server.Load(file, server.Parts{Middleware: []holdfast.MiddlewareKind{mailKind}})
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir+"/", "") + "\n"
	}
	defer loaded.Close()
	var names strings.Builder
	for _, m := range loaded.Agents[0].Middleware {
		names.WriteString(m.Name + "\n")
	}
	return names.String()
}

// MailV1 is the state as version 1 of the program kept it.
type MailV1 struct {
	Sent int `json:"sent"`
}

// MailV2 is the state of version 2, which counts by address.
type MailV2 struct {
	Sent map[string]int `json:"sent"`
}

// MailV3 is the current state, in which the member has a better name.
type MailV3 struct {
	ByAddress map[string]int `json:"byAddress"`
}

var mailV3 = state.Register(state.Spec[MailV3]{
	Name:    "acme.mail",
	Version: 3,
	Migrations: map[int]state.Migration{
		1: state.Migrate(func(old MailV1) (MailV2, error) {
			return MailV2{Sent: map[string]int{"unknown": old.Sent}}, nil
		}),
		2: state.Migrate(func(old MailV2) (MailV3, error) {
			return MailV3{ByAddress: old.Sent}, nil
		}),
	},
})

// Read reads pages, and shows how far it has come.
func Read(ctx context.Context, pages []string) error {
	finish, err := activity.Step(ctx, "read")
	if err != nil {
		return err
	}
	defer finish()
	progress := activity.Progress{Title: "Reading", Total: float64(len(pages))}
	bar, err := activity.Show(ctx, activity.TypeProgress, progress)
	if err != nil {
		return err
	}
	for range pages {
		progress.Done++
		if err := bar.Set(ctx, progress); err != nil {
			return err
		}
	}
	return nil
}

// A test sees what a tool or a hook shows.
func Example_activities() {
	ctx := activity.ContextWith(context.Background(), &activity.Run{
		Show: func(_ context.Context, c activity.Change) error {
			fmt.Printf("%s %s\n", c.Type, c.Content)
			return nil
		},
		Step: func(_ context.Context, name string) (func(), error) {
			fmt.Println("begin", name)
			return func() { fmt.Println("end", name) }, nil
		},
	})
	if err := Read(ctx, []string{"one"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// begin read
	// holdfast.progress {"title":"Reading","done":0,"total":1}
	// holdfast.progress {"title":"Reading","done":1,"total":1}
	// end read
}

// A migration is tested with values that older versions have stored.
func Example_migrations() {
	schema, err := state.NewSchema(mailV3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, stored := range []state.Value{
		{Name: "acme.mail", Version: 1, Data: json.RawMessage(`{"sent":4}`)},
		{Name: "acme.mail", Version: 2, Data: json.RawMessage(`{"sent":{"ann@example.com":1}}`)},
		{Name: "acme.mail", Version: 3, Data: json.RawMessage(`{"byAddress":{"ann@example.com":1}}`)},
	} {
		states := schema.Restore(schema.Info(), []state.Value{stored}, nil)
		fmt.Println(mailV3.Get(states))
	}
	// Output:
	// {map[unknown:4]} <nil>
	// {map[ann@example.com:1]} <nil>
	// {map[ann@example.com:1]} <nil>
}

var (
	// codeBlocks matches the blocks of a page that the examples must contain.
	codeBlocks = regexp.MustCompile("(?ms)^```(?:go|text|json|yaml)\n(.*?)^```$")
	// lineStarts and blanks are ignored when a page is compared with the examples.
	lineStarts = regexp.MustCompile(`(?m)^\s*// `)
	blanks     = regexp.MustCompile(`\s+`)
)

// TestDocumentedCode: the code, output and JSON on the pages is that of the examples,
// which compile and print it.
func TestDocumentedCode(t *testing.T) {
	plain := func(text string) string {
		return blanks.ReplaceAllString(lineStarts.ReplaceAllString(text, ""), "")
	}
	examples := plain(readFile(t, "example_middleware_test.go")) + plain(readFile(t, "example_deployments_test.go")) +
		plain(readFile(t, "example_models_test.go")) + plain(readFile(t, "example_prompt_test.go"))
	for _, page := range []string{"docs/models.md", "docs/prompt-cache.md", "docs/middleware.md",
		"docs/checkpointing.md", "docs/state-evolution.md"} {
		blocks := codeBlocks.FindAllStringSubmatch(readFile(t, page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no code blocks", page)
		}
		for _, b := range blocks {
			if !strings.Contains(examples, plain(b[1])) {
				t.Errorf("%s shows a block that no example has:\n%s", page, b[1])
			}
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
