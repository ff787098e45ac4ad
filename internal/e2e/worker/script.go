package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// script is what the model does, one answer for each group of calls: "work 1 + same
// 0, fail 2" calls two tools, then one, and then says that it is done.
type script [][]string

func parseScript(text string) script {
	var s script
	for _, group := range strings.Split(text, ",") {
		s = append(s, strings.Split(strings.TrimSpace(group), " + "))
	}
	return s
}

// model follows the script that its last message from a person is.
func (w *worker) model(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		w.note("model start thread=%s iteration=%d", req.Thread, req.Iteration)
		w.at(req.Thread, "model", req.Iteration)
		time.Sleep(w.delay)
		usage := usageOf(req.Iteration)
		w.note("model said thread=%s iteration=%d input=%d output=%d", req.Thread, req.Iteration, *usage.InputTokens,
			*usage.OutputTokens)
		if !yield(holdfast.Delta{Usage: usage}, nil) {
			return
		}
		w.at(req.Thread, "said", req.Iteration)
		finish := holdfast.FinishStop
		for i, call := range nextCalls(req.Messages) {
			finish = holdfast.FinishToolCalls
			if !yield(holdfast.Delta{Call: callOf(i, call, req)}, nil) {
				return
			}
		}
		if finish == holdfast.FinishStop && !yield(holdfast.Delta{Text: "Done."}, nil) {
			return
		}
		yield(holdfast.Delta{Finish: finish}, nil)
	}
}

// usageOf is what a call reports: another number for each iteration, so that a sum
// tells which calls are in it.
func usageOf(iteration int) *holdfast.Usage {
	input, output := int64(50+iteration), int64(20)
	return &holdfast.Usage{Provider: "test", Model: "m", InputTokens: &input, OutputTokens: &output}
}

// nextCalls is the group that comes next.
func nextCalls(messages []holdfast.Message) []string {
	answers := 0
	for i := len(messages) - 1; i >= 0; i-- {
		switch messages[i].Role {
		case holdfast.RoleAssistant:
			answers++
		case holdfast.RoleUser:
			if s := parseScript(messages[i].PlainText()); answers < len(s) {
				return s[answers]
			}
			return nil
		}
	}
	return nil
}

// callOf makes a call that is the same for every caller.
func callOf(i int, call string, req *holdfast.ModelRequest) *holdfast.CallDelta {
	name, n, _ := strings.Cut(call, " ")
	return &holdfast.CallDelta{
		Index:     i,
		ID:        fmt.Sprintf("%s-%d-%d", name, req.Iteration, i),
		Name:      name,
		Arguments: `{"n":` + strconv.Quote(n) + `}`,
	}
}

type toolArgs struct {
	N string `json:"n"`
}

var errBroken = errors.New("it is broken")

// tools are what scripts call. They say in the journal that they were started.
func (w *worker) tools() []holdfast.Tool {
	tool := func(name string, do func(context.Context) (string, error)) holdfast.Tool {
		return holdfast.NewTool(name, "A tool of the tests.", func(ctx context.Context, _ toolArgs) (string, error) {
			call := holdfast.CallFrom(ctx)
			w.note("tool start call=%s/%d thread=%s key=%s", name, call.Iteration, call.Thread, call.Key)
			w.at(call.Thread, "tool", call.Iteration)
			time.Sleep(w.delay)
			return do(ctx)
		})
	}
	works := func(context.Context) (string, error) { return "ok", nil }
	return []holdfast.Tool{
		tool("work", works), tool("same", works), tool("delicate", works),
		tool("fail", func(context.Context) (string, error) { return "", errBroken }),
		tool("ask", func(ctx context.Context) (string, error) {
			if holdfast.CallFrom(ctx).Answer == nil {
				return "", &holdfast.Interrupt{Reason: "input_required", Message: "Well?"}
			}
			return "answered", nil
		}),
	}
}
