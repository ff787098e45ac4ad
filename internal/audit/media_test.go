package audit

import (
	"context"
	"encoding/base64"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestImages: a thread with images is sound, archived or not; a copy of it shows the same,
// and a fork has them too; what a person inspects says what they are.
func TestImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("image", 2000)))
		painter := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				part := &holdfast.Part{
					Type:           holdfast.PartImage,
					EncryptedValue: "sealed",
					Source:         &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/png", Value: image},
				}
				yield(holdfast.Delta{Text: "Here.", Media: part, Finish: holdfast.FinishStop}, nil)
			}
		})
		db := memstore.New()
		e := looptest.Start(t, db, nil, holdfast.Agent{Name: "a", Model: painter})
		for _, run := range []string{"r1", "r2"} {
			looptest.Succeeded(t, looptest.Posted(t, e,
				looptest.RunInput("t", run, looptest.UserSays(run+"u", "paint"))))
			wantSound(t, db, "t")
			if run == "r1" {
				time.Sleep(2 * time.Minute) // it is archived
				wantSound(t, db, "t")
			}
		}
		other := memstore.New()
		if err := copied(t, other, looptest.KeyOf("t"), written(t, db, looptest.KeyOf("t"))); err != nil {
			t.Fatal(err)
		}
		wantSound(t, other, "t")
		copies := looptest.Start(t, other, nil, holdfast.Agent{Name: "a", Model: painter})
		for _, run := range []string{"r1", "r2"} {
			reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", run, store.Cursor{}, agui.DialectV1)
			before := looptest.Show(looptest.Collect(t, reply, err))
			reply, err = copies.Owner.Events(t.Context(), looptest.Alice, "t", run, store.Cursor{}, agui.DialectV1)
			if after := looptest.Show(looptest.Collect(t, reply, err)); after != before ||
				!strings.Contains(before, image) {
				t.Errorf("run %s: the copy shows something else", run)
			}
		}
		looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
			threads.Travel{Message: lastAnswer(t, e), Thread: "fork"}))(t)
		looptest.WantTexts(t, e, "fork", "user:paint", "assistant:Here.", "activity:", "user:paint", "assistant:Here.",
			"activity:")
		in := looptest.Must(Inspect(t.Context(), db, looptest.KeyOf("t"), ""))(t)
		if got := in.History[2].Text; !strings.HasPrefix(got, "(image of type image/png, 13336 bytes, of message ") {
			t.Errorf("inspected is %q", got)
		}
	})
}

// lastAnswer is the id of the last message of the assistant.
func lastAnswer(t *testing.T, e *looptest.Engine) (id string) {
	t.Helper()
	raw, err := e.Messages(t.Context(), looptest.Alice, "t")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range raw {
		if m, err := agui.DecodeMessage(r); err == nil && m.Role == string(holdfast.RoleAssistant) {
			id = m.ID
		}
	}
	return id
}
