package loop_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// TestLeftLongAgo: what a branch has done stands, also if it was left a few messages ago: who
// goes back to it, or edits once more, pays no second time.
func TestLeftLongAgo(t *testing.T) {
	j, shared := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, shared, nil, spender(j))
	u1 := looptest.UserSays("u1", "pay 10")
	for _, thread := range []string{"back", "edited"} {
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput(thread, "r1", u1)))
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput(thread, "r2", looptest.UserSays("u1", "hello"))))
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput(thread, "r3", looptest.UserSays("u2", "bye"))))
	}
	j.Take()
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("back", "r4", u1)))
	looptest.WantTexts(t, e, "back", "user:pay 10", "assistant:", "tool:paid 10", "assistant:paid 10, answer 7")
	hello := looptest.Must(agui.DecodeMessage(looptest.Must(e.Messages(t.Context(), looptest.Alice,
		"edited"))(t)[0]))(t)
	open := looptest.OpenOf(t, looptest.Posted(t, e,
		looptest.RunInput("edited", "r4", looptest.UserSays(hello.ID, "pay 20"))))
	if len(open) != 1 || !strings.Contains(open[0].Message, `{"n":10}: paid 10`) {
		t.Errorf("asked %+v", open)
	}
	if got := j.Take(); len(got) > 0 {
		t.Errorf("the tool did %q once more", got)
	}
	sound(t, shared, "back")
	sound(t, shared, "edited")
	// An edit that was not answered to its end, and is answered again after another message.
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("anew", "r1", u1)))
	other := looptest.UserSays("u1", "pay 30")
	open = looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("anew", "r2", other)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("anew", "r3", `{"approved":false}`, open...)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("anew", "r4", looptest.UserSays("u2", "bye"))))
	open = looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("anew", "r5", other)))
	if len(open) != 1 || !strings.Contains(open[0].Message, `{"n":10}: paid 10`) || len(j.Take()) != 1 {
		t.Errorf("asked %+v", open)
	}
}

// TestLeftOnce: a question names a call once, however many branches have its result.
func TestLeftOnce(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, memstore.New(), nil, spender(j))
	u1 := looptest.UserSays("u1", "pay 10")
	for _, run := range []string{"r1", "r2", "r3"} {
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", run, u1)))
	}
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r4", looptest.UserSays("u1", "pay 20"))))
	if len(open) != 1 || strings.Count(open[0].Message, "paid 10") != 1 {
		t.Errorf("asked %+v", open)
	}
	if got := strings.Join(j.Take(), ", "); got != "paid 10" {
		t.Errorf("the tool did %q", got)
	}
}

// TestEditSentAgain: a client that was cut off before it heard of the new id of what its user
// has edited sends it under the old one again. That is neither what was said before, nor one
// more edit while the first one is not answered.
func TestEditSentAgain(t *testing.T) {
	j, shared := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, shared, nil, spender(j))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	edited := looptest.UserSays("u1", "pay 20")
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", edited)))
	again := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", edited)))
	if len(open) != 1 || len(again) != 1 || open[0].ID != again[0].ID {
		t.Fatalf("asked %+v, then %+v", open, again)
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r4", `{"approved":true}`, open...)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r5", looptest.UserSays("u1", "hello"))))
	looptest.WantTexts(t, e, "t", "user:hello", "assistant:hello, answer 3")
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r6", looptest.UserSays("u1", "hello"))))
	looptest.WantTexts(t, e, "t", "user:hello", "assistant:hello, answer 4")
	if got := strings.Join(j.Take(), ", "); got != "paid 10, paid 20" {
		t.Errorf("the tool did %q", got)
	}
	sound(t, shared, "t")
}

// spoilt is a store whose recorded results cannot be read.
type spoilt struct{ store.Store }

func (s spoilt) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, after string, limit int,
) ([]store.Value, error) {
	values, err := s.Store.Values(ctx, key, kind, after, limit)
	for i := range values {
		if kind == store.KindReuse {
			values[i].Data = []byte(`{"dataFormat":1,"content":7}`)
		}
	}
	return values, err
}

// TestLeftUnreadable: a recorded result that cannot be read is no leave to pay again.
func TestLeftUnreadable(t *testing.T) {
	j := &looptest.Notebook{}
	e := looptest.Start(t, spoilt{memstore.New()}, nil, spender(j))
	u1 := looptest.UserSays("u1", "pay 10")
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", u1)))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u1", "hello"))))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", u1)))
	if got := looptest.Texts(t, e, "t"); !strings.Contains(got[2], "not made again") {
		t.Errorf("the thread has %q", got)
	}
	if got := strings.Join(j.Take(), ", "); got != "paid 10" {
		t.Errorf("the tool did %q", got)
	}
}

// TestLeftNotStarted: a call that nobody has allowed was not made, also after the person has
// written on instead of answering.
func TestLeftNotStarted(t *testing.T) {
	j, shared := &looptest.Notebook{}, memstore.New()
	e := looptest.Start(t, shared, nil, spender(j, looptest.AsksLeave(time.Time{}, "pay")))
	looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "pay 10"))))
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "never mind"))))
	open := looptest.OpenOf(t, looptest.Posted(t, e, looptest.RunInput("t", "r3", looptest.UserSays("u1", "pay 20"))))
	if len(open) != 1 || open[0].Message != "May it?" {
		t.Errorf("asked %+v", open)
	}
	sound(t, shared, "t")
}
