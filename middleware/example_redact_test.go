package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
)

// What a tool returns has no secrets in it when it is stored, shown and logged.
func ExampleRedaction() {
	redaction := middleware.Redaction(middleware.RedactionOptions{
		Patterns: []middleware.RedactionPattern{{Name: "customer_pin", Regexp: `(?i)pin: (?P<secret>[0-9]{4})`}},
	})
	tool := redaction.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Text: "PIN: 4711, database: postgres://app:hunter2@db/orders"}, nil
	})
	result, err := tool(context.Background(), nil, holdfast.ToolCall{Name: "get_customer"})
	fmt.Println(result.Text, err)
	// Output: PIN: [redacted:customer_pin], database: postgres://app:[redacted:url_password]@db/orders <nil>
}

func ExampleRedactLogs() {
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{} // so that this example always prints the same
		}
		return a
	}})
	log := slog.New(middleware.RedactLogs(plain, middleware.RedactionOptions{}))
	log.Error("cannot connect", "error", fmt.Errorf("dial %s: refused", "redis://:hunter2@cache:6379"))
	// Output: level=ERROR msg="cannot connect" error="dial redis://:[redacted:url_password]@cache:6379: refused"
}
