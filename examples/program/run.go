package main

// A run without HTTP: for jobs, bots, command lines and tests.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// ask runs one message on a thread and writes the answer as it comes. If the run stops at
// a question to a person, it answers yes and continues.
func ask(ctx context.Context, s *server.Server, who holdfast.Principal, thread, text string, out io.Writer) error {
	input := server.Input{Thread: thread, Text: text}
	for {
		for event, err := range s.Run(ctx, who, input) {
			var refused *holdfast.Error
			if errors.As(err, &refused) && refused.Code == codes.RunInProgress {
				return fmt.Errorf("%s is busy, try again later: %w", thread, err)
			}
			if err != nil {
				return err
			}
			if err := show(event, out); err != nil {
				return err
			}
		}
		info, err := s.Thread(ctx, who, thread)
		if err != nil {
			return err
		}
		if info.Status != threads.StatusInterrupted {
			return nil
		}
		input = server.Input{Thread: thread}
		for _, question := range info.Interrupts {
			fmt.Fprintln(out, "approved:", question.ID)
			input.Answers = append(input.Answers,
				server.Answer{Interrupt: question.ID, Payload: json.RawMessage(`{"approved": true}`)})
		}
	}
}

// show writes the words of an answer, and which tools are called.
func show(event server.Event, out io.Writer) error {
	var e struct {
		Delta        string `json:"delta"`
		ToolCallName string `json:"toolCallName"`
		Message      string `json:"message"`
	}
	if err := json.Unmarshal(event.JSON, &e); err != nil {
		return err
	}
	var err error
	switch event.Type {
	case "TEXT_MESSAGE_CONTENT":
		_, err = io.WriteString(out, e.Delta)
	case "TEXT_MESSAGE_END":
		_, err = io.WriteString(out, "\n")
	case "TOOL_CALL_START":
		_, err = fmt.Fprintln(out, "calls", e.ToolCallName)
	case "RUN_ERROR":
		return fmt.Errorf("the run failed: %s", e.Message)
	}
	return err
}
