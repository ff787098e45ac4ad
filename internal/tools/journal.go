package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// Journal returns a tool that does what t does and writes a line to w when a
// call starts and another when it ends:
//
//	tool start name=lookup thread=t1 run=r1 call=call_0 key=KEY
//	tool end name=lookup thread=t1 run=r1 call=call_0 key=KEY outcome=ok
//
// The outcome is ok, failed or asked. Each line is one Write, so that a file opened for
// appending has only whole lines, whatever happens to the process. w must be safe for
// concurrent use, as an *os.File is.
func Journal(t holdfast.Tool, w io.Writer) holdfast.Tool {
	return &journaled{Tool: t, w: w}
}

type journaled struct {
	holdfast.Tool
	w io.Writer
}

// Call runs the tool between two lines. If the first cannot be written, it runs nothing.
func (j *journaled) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	which := fmt.Sprintf("name=%s thread=%s run=%s call=%s key=%s", field(call.Name), field(call.Thread),
		field(call.Run), field(call.ID), field(call.Key))
	if _, err := fmt.Fprintf(j.w, "tool start %s\n", which); err != nil {
		return holdfast.ToolResult{}, errors.New("the journal cannot be written; nothing was run")
	}
	result, err := j.Tool.Call(ctx, call)
	outcome := "ok"
	var ask *holdfast.Interrupt
	switch {
	case errors.As(err, &ask):
		outcome = "asked"
	case err != nil || result.Failed:
		outcome = "failed"
	}
	// The call has been made; a journal that fails now must not hide its result.
	_, _ = fmt.Fprintf(j.w, "tool end %s outcome=%s\n", which, outcome)
	return result, err
}

// field returns a value as a single word, quoted if necessary.
func field(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
