package loop_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// picture is an image of that many bytes as a model gives it.
func picture(size int, secret string) *holdfast.Part {
	data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("p", size)))
	return &holdfast.Part{
		Type:           holdfast.PartImage,
		EncryptedValue: secret,
		Source:         &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/png", Value: data},
	}
}

// painter is a model that says the deltas of the next turn. asked gets what it was asked.
func painter(asked *[]*holdfast.ModelRequest, turns ...[]holdfast.Delta) holdfast.Model {
	n := 0
	return holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		*asked = append(*asked, req)
		turn := turns[min(n, len(turns)-1)]
		n++
		return func(yield func(holdfast.Delta, error) bool) {
			for _, d := range turn {
				switch d.Text {
				case "break":
					yield(holdfast.Delta{}, &holdfast.ModelError{Retryable: true, Err: holdfast.ErrTruncated})
					return
				case "quota":
					yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.Quota, Err: holdfast.ErrTruncated})
					return
				case "hang":
					<-ctx.Done()
					return
				}
				if !yield(d, nil) {
					return
				}
			}
		}
	})
}

// activitiesOf are the ACTIVITY_SNAPSHOTs of a stream.
func activitiesOf(events []agui.Event) (out []agui.ActivitySnapshot) {
	for _, ev := range events {
		if e, ok := ev.(agui.ActivitySnapshot); ok {
			out = append(out, e)
		}
	}
	return out
}

// url returns the URL in an activity's content.
func url(t *testing.T, content json.RawMessage) string {
	t.Helper()
	var c struct{ MIMEType, URL string }
	if err := json.Unmarshal(content, &c); err != nil || c.MIMEType != "image/png" {
		t.Fatalf("the content is %.100s (%v)", content, err)
	}
	return c.URL
}

// TestImagesAreActivities: what a model has painted is shown and stored as an activity after
// its answer, the log refers to it, and the model gets it back where it was.
func TestImagesAreActivities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []*holdfast.ModelRequest
		first, second := picture(3000, "sealed"), picture(10, "")
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: painter(
			&asked,
			[]holdfast.Delta{
				{Text: "Here: "},
				{Media: first},
				{Text: "and "},
				{Media: second},
				{Finish: holdfast.FinishStop},
			},
			[]holdfast.Delta{{Text: "Thanks.", Finish: holdfast.FinishStop}},
		)})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "paint")))
		looptest.Succeeded(t, events)
		shown := activitiesOf(events)
		if len(shown) != 2 || shown[0].ActivityType != "holdfast.image" ||
			url(t, shown[0].Content) != "data:image/png;base64,"+first.Source.Value {
			t.Fatalf("%.500s", looptest.Show(events))
		}
		looptest.WantTexts(t, e, "t", "user:paint", "assistant:Here: and ", "activity:", "activity:")
		key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
		records := looptest.Must(e.Store.Records(t.Context(), key, store.Cursor{}, 100))(t)
		for _, rec := range records {
			if len(rec.Data) > 1000 {
				t.Errorf("the log has an image: %.100s", rec.Data)
			}
		}
		time.Sleep(2 * time.Minute) // it is archived
		again, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		// A text may have been shown in more pieces than it is replayed in.
		replayed := looptest.Collect(t, again, err)
		sameImages := slices.EqualFunc(activitiesOf(replayed), shown, func(a, b agui.ActivitySnapshot) bool {
			return a.MessageID == b.MessageID && string(a.Content) == string(b.Content)
		})
		if !sameImages || !slices.Equal(looptest.Reduce(replayed), looptest.Reduce(events)) {
			t.Errorf("the replay differs:\n%.1000s", looptest.Show(replayed))
		}
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "fine"))))
		answer := asked[1].Messages[1]
		var got []string
		for _, p := range answer.Parts {
			got = append(got, string(p.Type)+":"+p.Text+p.EncryptedValue)
		}
		if want := []string{
			"text:Here: ",
			"image:sealed",
			"text:and ",
			"image:",
		}; !slices.Equal(got, want) || answer.PlainText() != "Here: and " ||
			answer.Parts[1].Source.Value != first.Source.Value {
			t.Errorf("the model gets back %q, want %q", got, want)
		}
		if n := len(asked[1].Messages); n != 3 {
			t.Errorf("the model reads %d messages", n)
		}
	})
}

// TestOnlyAnImage: an answer without text is an empty message and its image, and the run is
// over. A client that does not know activities has nothing to resend.
func TestOnlyAnImage(t *testing.T) {
	var asked []*holdfast.ModelRequest
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: painter(&asked, []holdfast.Delta{{Media: picture(500, "")}, {Finish: holdfast.FinishStop}}),
	})
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "paint")))
	looptest.Succeeded(t, events)
	looptest.WantTexts(t, e, "t", "user:paint", "assistant:", "activity:")
	var id string
	for _, ev := range events {
		if s, ok := ev.(agui.TextMessageStart); ok {
			id = s.MessageID
		}
	}
	answer := agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleAssistant})
	next := looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u1", "paint"), answer,
		looptest.UserSays("u2", "again")))
	looptest.Succeeded(t, next)
	if len(asked) != 2 || len(asked[1].Messages[1].Parts) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
	for _, ev := range next {
		if agui.EventType(ev) == agui.TypeMessagesSnapshot {
			t.Error("a client without activities is told that it lacks something")
		}
	}
}

// TestImagesWithCalls: results follow the call, for models too.
func TestImagesWithCalls(t *testing.T) {
	var asked []*holdfast.ModelRequest
	call := &holdfast.CallDelta{Name: "ping", Arguments: "{}"}
	pong := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Tools: []holdfast.Tool{pong},
		Model: painter(&asked, []holdfast.Delta{{Media: picture(500, "")}, {Call: call},
			{Finish: holdfast.FinishToolCalls}}, []holdfast.Delta{{Text: "done", Finish: holdfast.FinishStop}})})
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "paint"))))
	looptest.WantTexts(t, e, "t", "user:paint", "assistant:", "activity:", "tool:pong", "assistant:done")
	if m := asked[1].Messages; len(m) != 3 || len(m[1].Calls) != 1 || len(m[1].Parts) != 1 ||
		m[2].Role != holdfast.RoleTool {
		t.Errorf("the model reads %+v", m)
	}
}

// TestImagesOfFailedAnswers: an answer that breaks off shows nothing of what it painted, and
// the next one shows its own.
func TestImagesOfFailedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []*holdfast.ModelRequest
		e := looptest.Start(t, memstore.New(), nil,
			holdfast.Agent{Name: "a", Model: painter(&asked,
				[]holdfast.Delta{{Text: "Here"}, {Media: picture(500, "lost")}, {Text: "break"}},
				[]holdfast.Delta{{Text: "There"}, {Media: picture(400, "")}, {Finish: holdfast.FinishStop}})})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "paint")))
		looptest.Succeeded(t, events)
		if shown := activitiesOf(events); len(shown) != 1 {
			t.Errorf("%d images were shown", len(shown))
		}
		looptest.WantTexts(t, e, "t", "user:paint", "assistant:There", "activity:")
	})
}

// TestImagesOfCancelledAnswers: what was painted before a cancel is kept.
func TestImagesOfCancelledAnswers(t *testing.T) {
	for name, before := range map[string][]holdfast.Delta{"text": {{Text: "Here"}}, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []*holdfast.ModelRequest
				e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a",
					Model: painter(&asked,
						append(before, holdfast.Delta{Media: picture(500, "")}, holdfast.Delta{Text: "hang"}),
						[]holdfast.Delta{{Text: "ok", Finish: holdfast.FinishStop}})})
				reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "paint")))
				synctest.Wait()
				if _, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"); err != nil {
					t.Fatal(err)
				}
				events := looptest.Collect(t, reply, err)
				if shown := activitiesOf(events); len(shown) != 1 {
					t.Errorf("%d images were shown:\n%.1000s", len(shown), looptest.Show(events))
				}
				text := ""
				for _, d := range before {
					text += d.Text
				}
				looptest.WantTexts(t, e, "t", "user:paint", "assistant:"+text, "activity:")
				looptest.Succeeded(t, looptest.Posted(t, e,
					looptest.RunInput("t", "r2", looptest.UserSays("u2", "go on"))))
				if parts := asked[1].Messages[1].Parts; len(parts) == 0 ||
					parts[len(parts)-1].Type != holdfast.PartImage {
					t.Errorf("the model gets back %+v", asked[1].Messages[1])
				}
			})
		})
	}
}

// TestMediaThatCannotBeShown: what is too large, or no media, is left out of the answer, and
// the stream says so once.
func TestMediaThatCannotBeShown(t *testing.T) {
	source := func(s holdfast.Source) *holdfast.Part { return &holdfast.Part{Type: holdfast.PartImage, Source: &s} }
	odd := map[string]*holdfast.Part{
		"it is larger than the agent's maxMedia": picture(4000, ""),
		"it has no content":                      {Type: holdfast.PartImage},
		"it is not media":                        {Type: holdfast.PartText, Text: "x", Source: &holdfast.Source{}},
		"it is not base64": source(holdfast.Source{Type: holdfast.SourceData,
			MIMEType: "image/png", Value: `"><script>`}),
		"its media type cannot be shown": source(holdfast.Source{Type: holdfast.SourceData,
			MIMEType: "image/png;x,", Value: "AAAA"}),
		"its source cannot be shown": source(holdfast.Source{Type: holdfast.SourceURL,
			Value: "javascript:alert(1)"}),
	}
	for why, part := range odd {
		var asked []*holdfast.ModelRequest
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.MaxMedia = 5000 },
			holdfast.Agent{Name: "a", Model: painter(&asked, []holdfast.Delta{
				{Text: "Here"},
				{Media: part},
				{Media: part},
				{Media: picture(30, "")},
				{Finish: holdfast.FinishStop},
			})})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "paint")))
		looptest.Succeeded(t, events)
		if shown := activitiesOf(events); len(shown) != 1 {
			t.Errorf("%s: %d images were shown", why, len(shown))
		}
		if n := strings.Count(looptest.Show(events), why); n != 1 ||
			!strings.Contains(looptest.Show(events), "holdfast.output_left_out") {
			t.Errorf("%s: it is said %d times:\n%s", why, n, looptest.Show(events))
		}
	}
}

// TestManyImages: a snapshot has the newest images as far as clients take them in one event;
// of the others it says how large they are.
func TestManyImages(t *testing.T) {
	var asked []*holdfast.ModelRequest
	smaller := func(c *looptest.Config) { c.MaxSnapshot = 9 << 10 }
	e := looptest.Start(t, memstore.New(), smaller, holdfast.Agent{
		Name:  "a",
		Model: painter(&asked, []holdfast.Delta{{Media: picture(3<<10, "")}, {Finish: holdfast.FinishStop}}),
	})
	for _, run := range []string{"1", "2", "3"} {
		looptest.Succeeded(t, looptest.Posted(t, e,
			looptest.RunInput("t", "r"+run, looptest.UserSays("u"+run, "paint"))))
	}
	reply, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectLegacy)
	frames, events := looptest.FramesOf(t, reply, err)
	for _, f := range frames {
		if len(f.Data) > 10<<10 {
			t.Errorf("an event has %d bytes", len(f.Data))
		}
	}
	var sizes []int
	for _, ev := range events {
		snapshot, ok := ev.(agui.MessagesSnapshot)
		if !ok {
			continue
		}
		for _, m := range snapshot.Messages {
			if m.Role == string(holdfast.RoleActivity) {
				var c struct {
					URL     string
					LeftOut int
				}
				if err := json.Unmarshal(m.Content, &c); err != nil {
					t.Fatal(err)
				}
				sizes = append(sizes, len(c.URL), c.LeftOut)
			}
		}
	}
	whole := len("data:image/png;base64,") + 4<<10
	if want := []int{0, 4 << 10, whole, 0, whole, 0}; !slices.Equal(sizes, want) {
		t.Errorf("the images have %d, want %d", sizes, want)
	}
}
