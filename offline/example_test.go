package offline_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
)

// A store is checked while no server has it open, for example before a deployment.
func ExampleCheck() {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "data")
	if err := talk(folder); err != nil {
		fmt.Println(err)
		return
	}

	db, err := offline.Open(offline.Location{URL: folder})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	done, err := offline.Check(context.Background(), db, nil, func(p offline.Problem) {
		fmt.Println(p.Key, p.What, p.Detail)
	})
	fmt.Println(done.Threads, "thread checked,", done.Problems, "problems,", err)
	err = offline.List(context.Background(), db, func(s *offline.Summary) {
		fmt.Println(s.Key, s.Status, s.Messages, "messages")
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 thread checked, 0 problems, <nil>
	// default/greeting idle 2 messages
}

// talk runs an agent once, with its threads in a folder.
func talk(folder string) error {
	s, err := server.New(server.Config{
		Store:  "file:" + folder,
		Agents: []holdfast.Agent{hello},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := s.StartEngine(ctx); err != nil {
		return err
	}
	for _, err := range s.Run(ctx, server.LocalPrincipal(), server.Input{Thread: "greeting", Text: "hi"}) {
		if err != nil {
			return err
		}
	}
	return s.Shutdown(ctx)
}
