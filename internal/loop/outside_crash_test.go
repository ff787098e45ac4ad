package loop_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// TestOutsideHandedOutAgain: the process dies while it hands a call out. The next one does
// so again, with another URL and the same key, whatever the effect; both URLs work.
func TestOutsideHandedOutAgain(t *testing.T) {
	for name, received := range map[string]bool{"before anybody had it": false, "after somebody had it": true} {
		for _, effect := range []holdfast.Effect{holdfast.EffectOnce, holdfast.EffectIdempotent} {
			t.Run(name+", "+string(effect), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mortal := &looptest.Mortal{Store: memstore.New()}
					dying := &postbox{
						before: func(ctx context.Context,
							_ holdfast.OutsideCall) error {
							<-ctx.Done()
							return ctx.Err()
						},
					}
					one := looptest.Start(t, mortal, withURLs,
						outsideAgent(finance(dying, holdfast.Outside{ExpiresAfter: time.Hour},
							holdfast.WithEffect(effect))))
					looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
						looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
					time.Sleep(time.Second)
					mortal.Dead.Store(true)
					p := &postbox{}
					two := looptest.Start(t, mortal.Store, withURLs,
						outsideAgent(finance(p, holdfast.Outside{ExpiresAfter: time.Hour},
							holdfast.WithEffect(effect))))
					time.Sleep(10 * time.Second)
					info := settled(t, two, "t")
					if len(info.OutsideCalls) != 1 || p.keys[0] != dying.keys[0] || p.token() == dying.token() {
						t.Fatalf("%+v; keys %q and %q", info, dying.keys, p.keys)
					}
					// Its time has begun with the first one.
					if left := time.Until(info.OutsideCalls[0].ExpiresAt); left >= time.Hour-10*time.Second {
						t.Errorf("it expires in %s", left)
					}
					token := p.token()
					if received {
						token = dying.token()
					}
					first := looptest.Must(finish(two, token, `{"approved":true}`))(t)
					settled(t, two, "t")
					for _, token := range []string{p.token(), dying.token()} {
						if again := looptest.Must(finish(two, token, `{"approved":true}`))(t); *again != *first {
							t.Errorf("again it is %+v", again)
						}
					}
					looptest.WantTexts(t, two, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
					sound(t, mortal.Store, "t")
				})
			})
		}
	}
}

// TestOutsideOtherReplica: a thread that waits is finished on a server that has never seen
// it, after the one that handed the call out is gone.
func TestOutsideOtherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mortal := &looptest.Mortal{Store: memstore.New()}
		p := &postbox{}
		agent := outsideAgent(finance(p, holdfast.Outside{}))
		waitingFor(t, looptest.Started(t, looptest.Start(t, mortal, withURLs, agent), "t"))
		mortal.Dead.Store(true)
		two, three := looptest.Start(t, mortal.Store, withURLs, agent), looptest.Start(t, mortal.Store, withURLs, agent)
		first := looptest.Must(finish(two, p.token(), `{"approved":true}`))(t)
		if again := looptest.Must(finish(three, p.token(), `{"approved":true}`))(t); *again != *first {
			t.Errorf("elsewhere it is %+v", again)
		}
		settled(t, two, "t")
		looptest.WantTexts(t, three, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
	})
}

// lostReply is a store whose answer to the commit with a finished call is lost, and whose
// process dies with it.
type lostReply struct {
	*looptest.Mortal
	before bool // the commit does not reach the store either
}

func (l *lostReply) Commit(ctx context.Context, c *store.Commit) error {
	for _, v := range c.Put {
		if v.Kind != store.KindOutside {
			continue
		}
		if !l.before {
			if err := l.Mortal.Commit(ctx, c); err != nil {
				return err
			}
		}
		l.Dead.Store(true)
		return looptest.ErrUnreachable
	}
	return l.Mortal.Commit(ctx, c)
}

// Head answers nothing after the death.
func (l *lostReply) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	if l.Dead.Load() {
		return nil, looptest.ErrUnreachable
	}
	return l.Mortal.Head(ctx, key)
}

// TestOutsideKilledAtTheAnswer: the process dies before it can say that a result was taken.
// Sent again, the result gets the one answer that there is, and the run goes on once.
func TestOutsideKilledAtTheAnswer(t *testing.T) {
	for name, before := range map[string]bool{"before the commit": true, "after the commit": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dying := &lostReply{Mortal: &looptest.Mortal{Store: memstore.New()}, before: before}
				p := &postbox{}
				agent := outsideAgent(finance(p, holdfast.Outside{}))
				one := looptest.Start(t, dying, withURLs, agent)
				waitingFor(t, looptest.Started(t, one, "t"))
				if _, err := finish(one, p.token(), `{"approved":true}`); looptest.Code(err) != codes.StoreUnavailable {
					t.Fatalf("the answer is %v", err)
				}
				two := looptest.Start(t, dying.Store, withURLs, agent)
				if !before {
					if _, err := finish(two, p.token(),
						`{"approved":false}`); looptest.Code(err) != codes.CallAlreadyAnswered {
						t.Errorf("another result: %v", err)
					}
				}
				first := looptest.Must(finish(two, p.token(), `{"approved":true}`))(t)
				time.Sleep(10 * time.Second)
				settled(t, two, "t")
				if again := looptest.Must(finish(two, p.token(), `{"approved":true}`))(t); *again != *first ||
					first.Run == "" {
					t.Errorf("first %+v, then %+v", first, again)
				}
				looptest.WantTexts(t, two, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
				sound(t, dying.Store, "t")
			})
		})
	}
}

// TestOutsideOwnerDies: the owner of a run dies after a result was left for it and before it
// has taken it. The sender of the result waits, and the next owner takes it.
func TestOutsideOwnerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mortal := &looptest.Mortal{Store: memstore.New()}
		p := &postbox{}
		var dies atomic.Bool
		dies.Store(true)
		slow := looptest.Tool("slow", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			if dies.Load() {
				<-ctx.Done()
			}
			return "slow", ctx.Err()
		})
		a := outsideAgent(finance(p, holdfast.Outside{}), slow)
		a.Model = callsThese("slow {}", `approve {"amount":1}`)
		one := looptest.Start(t, mortal, withURLs, a)
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(time.Second)
		mortal.Dead.Store(true)
		dies.Store(false)
		two := looptest.Start(t, mortal.Store, withURLs, a)
		done, err := two.Owner.Finish(t.Context(),
			owner.OutsideResult{Token: p.token(), Result: json.RawMessage(`{"approved":true}`)})
		if err != nil || done.Run == "" { // the run's own, or the next one if that has ended before
			t.Fatalf("%+v, %v", done, err)
		}
		settled(t, two, "t")
		if got := looptest.Texts(t, two, "t"); len(got) != 5 || got[4] != "assistant:done" {
			t.Errorf("the history is %q", got)
		}
		sound(t, mortal.Store, "t")
	})
}

// TestOutsideInPlaceOfATool: a call was started by a tool that the server has run itself, and its
// process has died. The next one has a contract of that name: the call is in doubt, and is not
// handed out as if nothing had happened.
func TestOutsideInPlaceOfATool(t *testing.T) {
	for name, keeps := range map[string]bool{"nothing is kept": false, "something is kept": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mortal := &looptest.Mortal{Store: memstore.New()}
				approve := holdfast.NewTool(
					"approve",
					"approves",
					func(ctx context.Context, _ approveArgs) (string, error) {
						if keeps {
							if err := holdfast.Keep(ctx, []byte("1")); err != nil {
								return "", err
							}
						}
						<-ctx.Done()
						return "", ctx.Err()
					},
					holdfast.WithEffect(holdfast.EffectOnce),
				)
				one := looptest.Start(t, mortal, withURLs, outsideAgent(approve))
				looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
				time.Sleep(time.Second)
				mortal.Dead.Store(true)
				p := &postbox{}
				two := looptest.Start(t, mortal.Store, withURLs, outsideAgent(finance(p, holdfast.Outside{})))
				time.Sleep(10 * time.Second)
				settled(t, two, "t")
				if len(p.tokens) > 0 {
					t.Errorf("handed out %d times", len(p.tokens))
				}
				looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:"+thread.TextInDoubt, "assistant:done")
				sound(t, mortal.Store, "t")
			})
		})
	}
}
