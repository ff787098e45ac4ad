package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestTraceSurvives: the trace context of a request reaches the tools of its run, in another
// process too, and of the run that goes on after a question, unless that has its own.
func TestTraceSurvives(t *testing.T) {
	const first = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const second = "00-11111111111111111111111111111111-2222222222222222-00"
	synctest.Test(t, func(t *testing.T) {
		var j looptest.Notebook
		mortal := &looptest.Mortal{Store: memstore.New()}
		agent := func(dies bool) holdfast.Agent {
			return holdfast.Agent{
				Name: "a",
				Model: looptest.Say(looptest.Calls("work", `{}`), looptest.Calls("work", `{}`),
					holdfast.Delta{Text: "done"}),
				Tools: []holdfast.Tool{
					holdfast.NewTool("work", "works", func(ctx context.Context, _ struct{}) (string, error) {
						j.Note(holdfast.IterationFrom(ctx).Traceparent)
						if dies {
							<-ctx.Done()
						}
						if holdfast.CallFrom(ctx).Answer == nil {
							return "", &holdfast.Interrupt{Message: "Go on?"}
						}
						return "ok", ctx.Err()
					}, holdfast.WithEffect(holdfast.EffectPure)),
				},
			}
		}
		one := looptest.Start(t, mortal, nil, agent(true))
		in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
		in.Traceparent = first
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "", in))(t)
		time.Sleep(time.Second)
		mortal.Dead.Store(true)
		var log bytes.Buffer
		other := looptest.Start(t, mortal.Store, func(c *looptest.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}, agent(false))
		time.Sleep(10 * time.Second)
		open := looptest.OpenOf(t, looptest.Posted(t, other, looptest.RunInput("t", "r2")))
		more := looptest.OpenOf(t, looptest.Posted(t, other, looptest.Answers("t", "r3", `{}`, open...)))
		last := looptest.Answers("t", "r4", `{}`, more...)
		last.Traceparent = second
		looptest.Succeeded(t, looptest.Posted(t, other, last))
		want := fmt.Sprint([]string{first, first, first, first, second})
		if got := fmt.Sprint(j.Take()); got != want {
			t.Errorf("the tool saw %s\nwant %s", got, want)
		}
		synctest.Wait()
		for _, want := range []string{`takeover=true`, `msg="tool call starts"`, `continues=`} {
			found := false
			for line := range strings.Lines(log.String()) {
				found = found || strings.Contains(line, want) &&
					strings.Contains(line, "traceId=0af7651916cd43dd8448eb211c80319c")
			}
			if !found {
				t.Errorf("no line with %s has the trace:\n%s", want, log.String())
			}
		}
	})
}
