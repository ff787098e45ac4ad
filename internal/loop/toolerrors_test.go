package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestToolErrorTexts: what the model and the stream are shown of a tool's error, and what
// only the log is told.
func TestToolErrorTexts(t *testing.T) {
	cause := errors.New("dial postgres://app:secret@db.internal")
	for _, c := range []struct {
		name string
		err  error
		hide bool
		want string
	}{
		{"plain", cause, false, cause.Error()},
		{"plain, hidden", cause, true, "ping failed; the server's log has the cause."},
		{"public", holdfast.Errorf("db_down", "The data base is down.").Wrap(cause), false, "The data base is down."},
		{"public, hidden", fmt.Errorf("ping: %w", holdfast.Errorf("db_down", "The data base is down.").Wrap(cause)),
			true, "The data base is down."},
		{"public without a text", holdfast.Errorf("db_down", "").Wrap(cause), false,
			"ping failed; the server's log has the cause."},
		{"arguments, hidden", fmt.Errorf("n is missing: %w", holdfast.ErrArguments), true,
			"n is missing: invalid arguments"},
	} {
		var log bytes.Buffer
		ping := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "", c.err })
		agent := holdfast.Agent{
			Name:           "a",
			Model:          looptest.Say(looptest.Calls("ping", "{}"), holdfast.Delta{Text: "done"}),
			Tools:          []holdfast.Tool{ping},
			HideToolErrors: c.hide,
		}
		e := looptest.Start(t, memstore.New(), func(cfg *looptest.Config) {
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		}, agent)
		events := looptest.Started(t, e, "t")
		looptest.Succeeded(t, events)
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+c.want, "assistant:done")
		// The result has the error's code, so that programs need not read its text.
		if has := strings.Contains(looptest.Show(events),
			`"metadata":{"holdfast":{"failed":true,"code":"db_down"}}`); has != strings.HasPrefix(c.name, "public") {
			t.Errorf("%s: the result has its code: %t\n%s", c.name, has, looptest.Show(events))
		}
		if err := e.Shutdown(t.Context()); err != nil { // nothing writes to the log any more
			t.Error(err)
		}
		hidden := !strings.Contains(c.want, "secret")
		if hidden && strings.Contains(looptest.Show(events), "secret") {
			t.Errorf("%s: the stream has the cause", c.name)
		}
		if withheld := hidden && !errors.Is(c.err, holdfast.ErrArguments); withheld != strings.Contains(log.String(),
			"secret@db.internal") {
			t.Errorf("%s: the log is %s", c.name, log.String())
		}
	}
}
