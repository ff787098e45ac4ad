package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
)

// serveFloor is the least that can serve a run: net/http, the same scripted
// model, one encoding and one flush per delta. It keeps nothing.
func serveFloor(l net.Listener, delay time.Duration) error {
	model := scripted.New(scripted.Options{Delay: delay})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /runs", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ThreadID, RunID string
			Messages        []struct{ ID, Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
			http.Error(w, "bad input", http.StatusBadRequest)
			return
		}
		rc := http.NewResponseController(w)
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(event map[string]string) {
			b, _ := json.Marshal(event)
			fmt.Fprintf(w, "data: %s\n\n", b)
			_ = rc.Flush()
		}
		send(map[string]string{"type": "RUN_STARTED", "threadId": in.ThreadID, "runId": in.RunID})
		send(map[string]string{"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"})
		last := in.Messages[len(in.Messages)-1]
		req := &holdfast.ModelRequest{Thread: in.ThreadID, Run: in.RunID, Messages: []holdfast.Message{{ID: last.ID, Role: holdfast.RoleUser, Text: last.Content}}}
		for d, err := range model.Stream(r.Context(), req) {
			if err != nil {
				return
			}
			if d.Text != "" {
				send(map[string]string{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": d.Text})
			}
		}
		send(map[string]string{"type": "TEXT_MESSAGE_END", "messageId": "m"})
		send(map[string]string{"type": "RUN_FINISHED", "threadId": in.ThreadID, "runId": in.RunID})
	})
	return http.Serve(l, mux)
}
