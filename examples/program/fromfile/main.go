// Command fromfile runs the agents of a file, which names a tool and a middleware of this
// program. With the argument "check" it says which stored states need migrations, and with
// "kinds" what the file may name as middleware.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/kinds"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

type refundArgs struct {
	Order string `json:"order"`
}

var refund = holdfast.NewTool("refund", "Refunds an order.", func(_ context.Context, a refundArgs) (string, error) {
	return "Refunded " + a.Order + ".", nil
}, holdfast.WithEffect(holdfast.EffectOnce))

type auditOptions struct {
	Tools []string `json:"tools"`
}

var auditKind = holdfast.MiddlewareKind{
	Name: "acme.audit",
	New: func(options json.RawMessage) (holdfast.Middleware, error) {
		var o auditOptions
		if err := holdfast.DecodeOptions(options, &o); err != nil {
			return holdfast.Middleware{}, err
		}
		if len(o.Tools) == 0 {
			return holdfast.Middleware{}, errors.New("tools is empty: list the tools to write down")
		}
		return audit(o), nil
	},
}

var parts = server.Parts{
	Tools:      []holdfast.Tool{refund},
	Middleware: []holdfast.MiddlewareKind{auditKind},
}

func serve() error {
	loaded, err := server.Load("holdfast.yaml", parts)
	if err != nil {
		return err
	}
	defer loaded.Close()
	return server.ListenAndServe(server.Config{Agents: loaded.Agents, Limits: loaded.Limits, Quotas: loaded.Quotas})
}

// audit writes calls of the tools into the log.
func audit(o auditOptions) holdfast.Middleware {
	return holdfast.Middleware{Name: "acme.audit", Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
		return func(ctx context.Context, t holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			if slices.Contains(o.Tools, call.Name) {
				slog.InfoContext(ctx, "audit", "tool", call.Name, "user", call.Principal.User, "key", call.Key)
			}
			return next(ctx, t, call)
		}
	}}
}

func main() {
	var err error
	if len(os.Args) > 1 {
		err = command(context.Background(), os.Args[1])
	} else {
		err = serve()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func command(ctx context.Context, name string) error {
	switch name {
	case "kinds":
		for _, k := range append(kinds.All(), auditKind) {
			fmt.Println(k.Name)
		}
		return nil
	case "check":
		return check(ctx)
	}
	return fmt.Errorf("unknown command %q", name)
}

func check(ctx context.Context) error {
	agents, _, err := server.ValidateAgents("holdfast.yaml", parts)
	if err != nil {
		return err
	}
	db, err := offline.Open(offline.Location{URL: "data"})
	if err != nil {
		return err
	}
	defer db.Close()
	return offline.CheckStates(ctx, db, agents, nil, func(thread store.ThreadKey, needs []state.PendingMigration) {
		for _, m := range needs {
			fmt.Println(thread, m.Name, "is version", m.From, "and", m.To,
				"is needed; the missing migration begins at", m.Missing) // 0: none is missing
		}
	})
}
