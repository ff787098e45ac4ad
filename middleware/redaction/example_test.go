package redaction_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// A tool's result has no secrets when it is stored, shown and logged.
func ExampleNew() {
	hiding := redaction.New(redaction.Options{
		Patterns: []redaction.Pattern{{Name: "customer_pin", Regexp: `(?i)pin: (?P<secret>[0-9]{4})`}},
	})
	tool := hiding.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Text: "PIN: 4711, database: postgres://app:hunter2@db/orders"}, nil
	})
	result, err := tool(context.Background(), nil, holdfast.ToolCall{Name: "get_customer"})
	fmt.Println(result.Text, err)
	// Output: PIN: [redacted:customer_pin], database: postgres://app:[redacted:url_password]@db/orders <nil>
}

func ExampleNewLogHandler() {
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{} // so that this example always prints the same
		}
		return a
	}})
	log := slog.New(redaction.NewLogHandler(plain, redaction.Options{}))
	log.Error("cannot connect", "error", fmt.Errorf("dial %s: refused", "redis://:hunter2@cache:6379"))
	// Output: level=ERROR msg="cannot connect" error="dial redis://:[redacted:url_password]@cache:6379: refused"
}

func ExampleNew_page() {
	redaction.New(redaction.Options{
		Patterns: []redaction.Pattern{{Name: "customer_pin", Regexp: `(?i)pin: (?P<secret>[0-9]{4})`}},
	})

	log := slog.New(redaction.NewLogHandler(slog.NewJSONHandler(os.Stderr, nil), redaction.Options{}))
	log.Debug("not enabled")
	// Output:
}
