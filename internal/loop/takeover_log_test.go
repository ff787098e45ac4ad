package loop_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestTakeoverInTheLog: a line says from whom a run was taken over, why, and after how long.
func TestTakeoverInTheLog(t *testing.T) {
	leave := map[string]func(owner *looptest.Engine, dying *looptest.Mortal){
		"why=silent after=(2|3)[.0-9]*s": func(_ *looptest.Engine, dying *looptest.Mortal) { dying.Dead.Store(true) },
		`why="handed over" after=0s`: func(owner *looptest.Engine, _ *looptest.Mortal) {
			_ = owner.Owner.Shutdown(context.Background())
		},
	}
	for want, leave := range leave {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				var started atomic.Int32
				var log bytes.Buffer
				looptest.Start(t, shared, func(c *looptest.Config) {
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
				}, naps(1, time.Second, &started))
				time.Sleep(10 * time.Second)
				dying := &looptest.Mortal{Store: shared}
				owner := looptest.Start(t, dying, nil, naps(1, time.Second, &started))
				in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
				if _, err := owner.Owner.Post(t.Context(), looptest.Alice, "", in); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				had := looptest.Must(shared.Head(t.Context(), looptest.KeyOf("t")))(t).Process
				go leave(owner, dying)
				takenOverAfter(t, shared, looptest.KeyOf("t"), 1, time.Now())
				synctest.Wait()
				line := `level=WARN msg="run taken over" thread=t run=r1 iteration=\d from=` + had + " " + want + "\n"
				if !regexp.MustCompile(line).Match(log.Bytes()) {
					t.Errorf("no line like %s in\n%s", line, log.String())
				}
			})
		})
	}
}
