package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestForeignMedia: a document with media by URL is refused, because nobody has checked where
// the URL leads.
func TestForeignMedia(t *testing.T) {
	db, _ := finishedThread(t)
	text := written(t, db, looptest.KeyOf("t"))
	for content, taken := range map[string]bool{
		`"go"`: true,
		`[{"type":"image","source":{"type":"data","value":"aGk=","mimeType":"image/png"}}]`:    true,
		`[{"type":"image","source":{"type":"url","value":"http://169.254.169.254/metadata"}}]`: false,
		`[{"type":"binary","mimeType":"image/png","url":"http://169.254.169.254/metadata"}]`:   false,
		`[{"type":"binary","mimeType":"image/png","data":"aGk="}]`:                             true,
		`[{"type":"text"}]`: false,
	} {
		d, err := ReadDocument(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Messages {
			if m := string(d.Messages[i].Data); strings.Contains(m, `"role":"user"`) {
				d.Messages[i].Data = []byte(`{"id":"` + d.Messages[i].ID + `","role":"user","content":` + content + `}`)
			}
		}
		_, err = ImportForeign(t.Context(), memstore.New(), store.ThreadKey{Tenant: "x", Thread: "y"}, "z", d,
			time.Now(), testID)
		if (err == nil) != taken {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestForeignRunning: a thread that runs rests in its copy, and the copy is sound.
func TestForeignRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		defer close(gate)
		wait := looptest.Tool("wait", holdfast.EffectOnce, func(context.Context) (string, error) {
			<-gate
			return "", nil
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("wait", "{}"), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{wait},
		})
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d := looptest.Must(ExportShown(t.Context(), e.Store, looptest.KeyOf("t"), looptest.Alice.User))(t)
		copied, key := memstore.New(), store.ThreadKey{Tenant: "x", Thread: "y"}
		th := looptest.Must(ImportForeign(t.Context(), copied, key, "z", d, time.Now(), testID))(t)
		if th.State.Status() != threads.StatusIdle || len(th.State.Calls) != 0 || th.Head.User != "z" ||
			th.Head.Process != "" {
			t.Errorf("%+v, %+v", th.Head, th.State)
		}
		if problems := looptest.Must(Check(t.Context(), copied, key))(t); len(problems) > 0 {
			t.Errorf("%+v", problems)
		}
	})
}

// TestForeignActivities: what a model has made comes with the document, and not by URL.
func TestForeignActivities(t *testing.T) {
	db, _ := finishedThread(t)
	text := written(t, db, looptest.KeyOf("t"))
	for content, taken := range map[string]bool{
		`{"mimeType":"image/png","url":"data:image/png;base64,aGk="}`:                   true,
		`{"mimeType":"image/png","url":"https://collector.example.com/who-reads-this"}`: false,
		`{"steps":[]}`: true,
	} {
		d := looptest.Must(ReadDocument(strings.NewReader(text)))(t)
		last := d.Messages[len(d.Messages)-1]
		d.Messages = append(d.Messages, DocumentMessage{
			ID:     "act",
			Parent: last.ID,
			Data:   []byte(`{"id":"act","role":"activity","activityType":"holdfast.image","content":` + content + `}`),
		})
		_, err := ImportForeign(t.Context(), memstore.New(), store.ThreadKey{Tenant: "x", Thread: "y"}, "z", d,
			time.Now(), testID)
		if (err == nil) != taken {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestForeignMarks: what the server says about messages is not taken from a document.
func TestForeignMarks(t *testing.T) {
	db, _ := finishedThread(t)
	d := looptest.Must(ReadDocument(strings.NewReader(written(t, db, looptest.KeyOf("t")))))(t)
	for i := range d.Messages {
		d.Messages[i].Data = []byte(strings.Replace(string(d.Messages[i].Data), "{",
			`{"metadata":{"holdfast":{"forged":true},"mine":1},`, 1))
	}
	copied, key := memstore.New(), store.ThreadKey{Tenant: "x", Thread: "y"}
	looptest.Must(ImportForeign(t.Context(), copied, key, "z", d, time.Now(), testID))(t)
	for _, m := range looptest.Must(copied.Messages(t.Context(), key))(t) {
		if strings.Contains(string(m.Data), "forged") || !strings.Contains(string(m.Data), `"mine":1`) {
			t.Errorf("%s", m.Data)
		}
	}
}

// TestForeignLies: a document that nobody could work with afterwards is refused, and says why
// in a few lines.
func TestForeignLies(t *testing.T) {
	db, _ := finishedThread(t)
	good := written(t, db, looptest.KeyOf("t"))
	for name, c := range map[string]struct{ want, text string }{
		"a state that is no JSON": {"not valid JSON", without(t, good, func(d *Document) {
			for i := range d.Values[store.KindBlob] {
				d.Values[store.KindBlob][i].Data = nil
			}
		})},
		"a run by another name": {"run_misnamed", without(t, good, func(d *Document) {
			run := &d.Values[store.KindRun][0]
			run.Data = []byte(strings.Replace(string(run.Data), `"id":"`, `"id":"not `, 1))
		})},
		"no run": {"names no run", without(t, good, func(d *Document) {
			d.State = []byte(strings.Replace(string(d.State), `"run":"`, `"ran":"`, 1))
		})},
		"no message": {"no message", without(t, good, func(d *Document) {
			d.State = []byte(strings.Replace(string(d.State), `"leaf":"`, `"left":"`, 1))
		})},
		"deeper than anybody sends": {"nested more than", without(t, good, func(d *Document) {
			d.Values[store.KindBlob][0].Data = []byte(strings.Repeat("[", 300) + strings.Repeat("]", 300))
		})},
		"a member twice": {"is there twice", without(t, good, func(d *Document) {
			m := &d.Messages[0]
			m.Data = []byte(strings.Replace(string(m.Data), "{", `{"role":"system",`, 1))
		})},
		"a message by another name": {"calls itself", without(t, good, func(d *Document) {
			m := &d.Messages[0]
			m.Data = []byte(strings.Replace(string(m.Data), `"id":"`, `"id":"not `, 1))
		})},
		"a role that nobody has": {"role", without(t, good, func(d *Document) {
			m := &d.Messages[0]
			m.Data = []byte(strings.Replace(string(m.Data), `"role":"user"`, `"role":"admin"`, 1))
		})},
		"many mistakes": {"more", without(t, good, func(d *Document) {
			for i := range 1000 {
				d.Messages = append(d.Messages, DocumentMessage{ID: fmt.Sprint(i), Parent: fmt.Sprint("no", i),
					Data: []byte(`{"id":"x","role":"user","content":"y"}`)})
			}
		})},
	} {
		d := looptest.Must(ReadDocument(strings.NewReader(c.text)))(t)
		_, err := ImportForeign(t.Context(), memstore.New(), store.ThreadKey{Tenant: "x", Thread: "y"}, "z", d,
			time.Now(), testID)
		if !errors.Is(err, ErrDocument) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// TestForeignTitle: a title that nobody could give a thread is made again.
func TestForeignTitle(t *testing.T) {
	db, _ := finishedThread(t)
	good := written(t, db, looptest.KeyOf("t"))
	for title, want := range map[string]string{"mine": "mine", strings.Repeat("t", 257): "", `two\nlines`: ""} {
		d := looptest.Must(ReadDocument(strings.NewReader(strings.ReplaceAll(good, `"title": "go"`,
			`"title": "`+title+`"`))))(t)
		th := looptest.Must(ImportForeign(t.Context(), memstore.New(), store.ThreadKey{Tenant: "x", Thread: "y"}, "z",
			d, time.Now(), testID))(t)
		if th.State.Title != want {
			t.Errorf("%.20s: %q", title, th.State.Title)
		}
	}
}

// TestForeignFailedAnswer: an answer that has failed is not shown to models here either.
func TestForeignFailedAnswer(t *testing.T) {
	breaks := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			_ = yield(holdfast.Delta{Text: "half"}, nil) && yield(holdfast.Delta{}, errors.New("broke"))
		}
	})
	from := memstore.New()
	e := looptest.Start(t, from, nil, holdfast.Agent{Name: "a", Model: breaks})
	looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	d, err := ReadDocument(strings.NewReader(written(t, from, looptest.KeyOf("t"))))
	if err != nil {
		t.Fatal(err)
	}
	to := memstore.New()
	if _, err := ImportForeign(t.Context(), to, looptest.KeyOf("t"), looptest.Alice.User, d, time.Now(),
		testID); err != nil {
		t.Fatal(err)
	}
	var shown []holdfast.Message
	asks := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		shown = req.Messages
		return looptest.Say(holdfast.Delta{Text: "fine"}).Stream(t.Context(), req)
	})
	other := looptest.Start(t, to, nil, holdfast.Agent{Name: "a", Model: asks})
	looptest.Posted(t, other, looptest.RunInput("t", "r2"))
	looptest.WantTexts(t, other, "t", "user:go", "assistant:half", "assistant:fine")
	if len(shown) != 1 {
		t.Errorf("the model was shown %d messages", len(shown))
	}
}

// TestForeignActivity: an activity that has changed is one here, too, and shows what it showed.
func TestForeignActivity(t *testing.T) {
	const long = "a title that is so long that a patch is shorter than all of it"
	work := looptest.Tool("work", holdfast.EffectPure, func(ctx context.Context) (string, error) {
		bar, err := activity.Show(ctx, activity.TypeProgress, activity.Progress{Title: long})
		return "worked", errors.Join(err, bar.Set(ctx, activity.Progress{Title: long, Done: 1}))
	})
	from, to := memstore.New(), memstore.New()
	e := looptest.Start(t, from, nil, holdfast.Agent{
		Name: "a", Tools: []holdfast.Tool{work},
		Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "ok"}),
	})
	looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	d, err := ReadDocument(strings.NewReader(written(t, from, looptest.KeyOf("t"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ImportForeign(t.Context(), to, looptest.KeyOf("t"), looptest.Alice.User, d, time.Now(),
		testID); err != nil {
		t.Fatal(err)
	}
	other := looptest.Start(t, to, nil, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "fine"})})
	var shown []string
	for _, raw := range looptest.Must(other.Messages(t.Context(), looptest.Alice, "t"))(t) {
		if m := looptest.Must(agui.DecodeMessage(raw))(t); m.Role == string(holdfast.RoleActivity) {
			shown = append(shown, string(m.Content)+string(m.Metadata))
		}
	}
	if want := `{"title":"` + long + `","done":1}`; len(shown) != 1 || !strings.HasPrefix(shown[0], want) ||
		!strings.Contains(shown[0], `"imported":true`) {
		t.Errorf("the activities are %q", shown)
	}
}
