package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// post is where the calls of a test are handed out to.
type postbox struct {
	mu     sync.Mutex
	tokens []string
	keys   []string
	// before, if set, is called with each call.
	before func(context.Context, holdfast.OutsideCall) error
}

func (p *postbox) deliver(ctx context.Context, call holdfast.OutsideCall) error {
	p.mu.Lock()
	p.tokens = append(p.tokens, strings.TrimPrefix(call.URL.Reveal(), "https://agents.example/calls?token="))
	p.keys = append(p.keys, call.Call.Key)
	before := p.before
	p.mu.Unlock()
	if before != nil {
		return before(ctx, call)
	}
	return nil
}

// token returns the token that was handed out last.
func (p *postbox) token() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[len(p.tokens)-1]
}

type approveArgs struct {
	Amount int `json:"amount"`
}

// contract returns a tool whose calls are finished from outside.
func finance(p *postbox, o holdfast.Outside, options ...holdfast.ToolOption) holdfast.Tool {
	if p != nil {
		o.Deliver = p.deliver
	}
	if o.Result == nil {
		o.Result = json.RawMessage(`{"type":"object","required":["approved"],` +
			`"properties":{"approved":{"type":"boolean"}}}`)
	}
	return contract.New[approveArgs]("approve", "asks the finance department", o, options...)
}

// outsideAgent calls approve, and answers.
func outsideAgent(tools ...holdfast.Tool) holdfast.Agent {
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("approve", `{"amount":7}`), holdfast.Delta{Text: "done"}),
		Tools: tools,
	}
}

func withURLs(c *looptest.Config) {
	c.FinishURL = func(token string) string { return "https://agents.example/calls?token=" + token }
}

func finish(e *looptest.Engine, token, result string) (*threads.FinishedCall, error) {
	return e.Owner.Finish(context.Background(), owner.OutsideResult{Token: token, Result: json.RawMessage(result)})
}

// waitingFor returns what RUN_FINISHED says of the calls that wait.
func waitingFor(t *testing.T, events []agui.Event) []threads.OutsideCall {
	t.Helper()
	f := looptest.Succeeded(t, events)
	var m struct {
		Holdfast struct{ OutsideCalls []threads.OutsideCall }
	}
	if len(f.Metadata) > 0 {
		if err := json.Unmarshal(f.Metadata, &m); err != nil {
			t.Fatal(err)
		}
	}
	if told := toldOutside(t, events); !slices.Equal(told, m.Holdfast.OutsideCalls) {
		t.Errorf("stock clients are told %+v, others %+v", told, m.Holdfast.OutsideCalls)
	}
	return m.Holdfast.OutsideCalls
}

// toldOutside returns what the event before the last one says of the calls that wait; nil if it is
// about something else.
func toldOutside(t *testing.T, events []agui.Event) []threads.OutsideCall {
	t.Helper()
	var value struct{ Calls []threads.OutsideCall }
	if c, ok := events[len(events)-2].(agui.Custom); ok && c.Name == "holdfast.outside_calls" {
		if err := json.Unmarshal(c.Value, &value); err != nil {
			t.Fatal(err)
		}
	}
	return value.Calls
}

// settled waits until the thread does not run.
func settled(t *testing.T, e *looptest.Engine, id string) *threads.Info {
	t.Helper()
	var info *threads.Info
	looptest.WaitFor(t, func() bool {
		info = looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, id))(t)
		return info.Status != threads.StatusRunning
	})
	return info
}

// TestOutside: a call is handed out with a URL that works once, the run ends and waits
// without anything in memory, and the result goes on with it.
func TestOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := &postbox{}, memstore.New()
		e := looptest.Start(t, store, withURLs, outsideAgent(finance(p, holdfast.Outside{ExpiresAfter: time.Hour})))
		events := looptest.Started(t, e, "t")
		waiting := waitingFor(t, events)
		if len(waiting) != 1 || waiting[0].Tool != "approve" || time.Until(waiting[0].ExpiresAt) != time.Hour ||
			len(looptest.Succeeded(t, events).Outcome.PendingToolCallIDs) > 0 {
			t.Fatalf("the run ends with %s", looptest.Show(events))
		}
		for _, dialect := range []agui.Dialect{agui.DialectV1, agui.DialectLegacy} {
			reply, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", dialect)
			if later := looptest.Collect(t, reply, err); !slices.Equal(toldOutside(t, later), waiting) {
				t.Errorf("in dialect %d, who comes later is told %s", dialect, looptest.Show(later))
			}
		}
		synctest.Wait()
		if n := e.Owner.Running(); n != 0 {
			t.Errorf("%d runs are under way while the thread waits", n)
		}
		sound(t, store, "t")
		info := settled(t, e, "t")
		if info.Status != threads.StatusIdle || len(info.OutsideCalls) != 1 || info.OutsideCalls[0] != waiting[0] {
			t.Errorf("it is shown as %+v", info)
		}
		if again := waitingFor(t, looptest.Resumed(t, e, "t", "r9")); !slices.Equal(again, waiting) {
			t.Errorf("hydrated, it waits for %+v", again)
		}
		done := looptest.Must(finish(e, p.token(), `{"approved": true}`))(t)
		if done.Thread != "t" || done.ID != waiting[0].ID || done.Tool != "approve" || done.Run == "" {
			t.Errorf("the answer is %+v", done)
		}
		if info := settled(t, e, "t"); len(info.OutsideCalls) > 0 || info.Run != done.Run {
			t.Errorf("afterwards %+v", info)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", `tool:{"approved":true}`, "assistant:done")
		sound(t, store, "t")
		replay := looptest.Collect(t, looptest.Must(e.Owner.Events(t.Context(), looptest.Alice, "t", done.Run, cursor0,
			agui.DialectV1))(t), nil)
		if !strings.Contains(looptest.Show(replay), `"type":"TOOL_CALL_RESULT"`) {
			t.Errorf("the run that goes on does not show the result: %s", looptest.Show(replay))
		}
		checkOnce(t, e, p.token(), done)
		checkNoToken(t, store, p, events, replay)
	})
}

var cursor0 store.Cursor

// checkOnce: the same result again gets the first answer, another one a refusal.
func checkOnce(t *testing.T, e *looptest.Engine, token string, first *threads.FinishedCall) {
	for _, same := range []string{`{"approved":true}`, ` {"approved" : true}`} {
		if again := looptest.Must(finish(e, token, same))(t); *again != *first {
			t.Errorf("again it is %+v", again)
		}
	}
	if _, err := finish(e, token, `{"approved":false}`); looptest.Code(err) != codes.CallAlreadyAnswered {
		t.Errorf("another result: %v", err)
	}
	if _, err := e.Owner.Finish(t.Context(), owner.OutsideResult{Token: token, Result: json.RawMessage(`"no"`),
		Failed: true}); looptest.Code(err) != codes.CallAlreadyAnswered {
		t.Errorf("an error: %v", err)
	}
}

// checkNoToken: neither the store nor the stream has what the URL has.
func checkNoToken(t *testing.T, s store.Store, p *postbox, streams ...[]agui.Event) {
	t.Helper()
	var all strings.Builder
	for _, events := range streams {
		all.WriteString(looptest.Show(events))
	}
	key := looptest.KeyOf("t")
	all.Write(looptest.Must(s.Head(t.Context(), key))(t).State)
	for _, kind := range store.Kinds() {
		for _, v := range looptest.Must(s.Values(t.Context(), key, kind, "", 0))(t) {
			all.Write(v.Data)
		}
	}
	for _, m := range looptest.Must(s.Messages(t.Context(), key))(t) {
		all.Write(m.Data)
	}
	for _, r := range looptest.Must(s.Records(t.Context(), key, cursor0, 10000))(t) {
		all.Write(r.Data)
	}
	for _, token := range p.tokens {
		_, secret, _ := strings.Cut(token, ".")
		if strings.Contains(all.String(), secret) {
			t.Errorf("a token is stored or shown")
		}
		if !strings.Contains(all.String(), thread.TokenHash(token)) {
			t.Error("its hash is not stored: the test looks in the wrong place")
		}
	}
}

// TestOutsideRefuses: what does not fit, what nobody was given, and what is too large is
// refused, and the call waits on.
func TestOutsideRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &postbox{}
		e := looptest.Start(t, memstore.New(), withURLs, outsideAgent(finance(p, holdfast.Outside{})))
		call := waitingFor(t, looptest.Started(t, e, "t"))[0].ID
		place, _, _ := strings.Cut(p.token(), ".")
		unknown := ""
		for _, token := range []string{"x", place, place + ".", place + ".x", p.token() + "x",
			thread.NewToken(looptest.KeyOf("nobody"), call, "s"), thread.NewToken(looptest.KeyOf("t"), "other", "s")} {
			_, err := finish(e, token, `{"approved":true}`)
			if looptest.Code(err) != codes.NotFound || unknown != "" && err.Error() != unknown {
				t.Errorf("%q: %v", token, err)
			}
			unknown = err.Error()
		}
		for result, code := range map[string]string{
			`{"approved":"yes"}`: codes.InvalidInput, `"yes"`: codes.InvalidInput, `{`: codes.InvalidInput,
			`null`: codes.InvalidInput,
			`"` + strings.Repeat("x", threads.MaxCallResult) + `"`: codes.PayloadTooLarge,
		} {
			if _, err := finish(e, p.token(), result); looptest.Code(err) != code {
				t.Errorf("%.20s: %v", result, err)
			}
		}
		if info := settled(t, e, "t"); len(info.OutsideCalls) != 1 {
			t.Errorf("it waits no more: %+v", info)
		}
		done := looptest.Must(e.Owner.Finish(t.Context(),
			owner.OutsideResult{Token: p.token(), Result: json.RawMessage(`"finance is closed"`), Failed: true}))(t)
		settled(t, e, "t")
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:finance is closed", "assistant:done")
		if done.Run == "" {
			t.Errorf("%+v", done)
		}
	})
}

// TestOutsideArguments: what the model writes is checked before anything is handed out.
func TestOutsideArguments(t *testing.T) {
	p := &postbox{}
	a := outsideAgent(finance(p, holdfast.Outside{}))
	a.Model = looptest.Say(looptest.Calls("approve", `{"amount":"much"}`), holdfast.Delta{Text: "done"})
	e := looptest.Start(t, memstore.New(), withURLs, a)
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	if got := looptest.Texts(t, e, "t")[2]; len(p.tokens) != 0 || !strings.Contains(got, "/amount") {
		t.Errorf("%d were handed out; the model reads %s", len(p.tokens), got)
	}
}

// TestOutsideNotHandedOut: if nobody can be reached, the model is told.
func TestOutsideNotHandedOut(t *testing.T) {
	p := &postbox{before: func(context.Context, holdfast.OutsideCall) error { return errors.New("no route") }}
	e := looptest.Start(t, memstore.New(), withURLs, outsideAgent(finance(p, holdfast.Outside{})))
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:approve could not be handed out: no route",
		"assistant:done")
	if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.CallClosed {
		t.Errorf("a result all the same: %v", err)
	}
}

// TestOutsideNotInTime: if nobody takes a call in its time, the log says why.
func TestOutsideNotInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := &postbox{before: func(ctx context.Context, _ holdfast.OutsideCall) error {
			<-ctx.Done()
			return errors.Join(errors.New("no route"), context.Cause(ctx))
		}}
		var handingOut sync.WaitGroup
		a := outsideAgent(finance(p, holdfast.Outside{}))
		a.Middleware = []holdfast.Middleware{middleware.ToolTimeout(time.Minute, &handingOut)}
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			withURLs(c)
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		}, a)
		looptest.Succeeded(t, looptest.Started(t, e, "t"))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:",
			"tool:approve did not finish within 1m0s and was given up. It may still have taken effect.",
			"assistant:done")
		handingOut.Wait()
		if err := e.Shutdown(t.Context()); err != nil { // nothing writes to the log any more
			t.Error(err)
		}
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "no route") ||
			!strings.Contains(got, "tool=approve thread=t run=r1") || strings.Contains(got, p.token()) {
			t.Errorf("the log is %s", got)
		}
	})
}

// TestOutsideMessages: a new message is refused while a call waits, or gives it up; resume
// does not answer it, and neither does a tool message.
func TestOutsideMessages(t *testing.T) {
	for name, abandonable := range map[string]bool{"waits": false, "abandonable": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, store := &postbox{}, memstore.New()
				e := looptest.Start(t, store, withURLs,
					outsideAgent(finance(p, holdfast.Outside{Abandonable: abandonable})))
				call := waitingFor(t, looptest.Started(t, e, "t"))[0].ID
				for _, entry := range []string{call, "int_1"} {
					in := looptest.RunInput("t", "r8")
					in.Resume = []agui.ResumeEntry{
						{
							InterruptID: entry,
							Status:      agui.ResumeResolved,
							Payload:     json.RawMessage(`{"approved":true}`),
						},
					}
					_, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
					if (looptest.Code(err) == codes.CallPending) != (entry == call) {
						t.Errorf("resume with %s: %v", entry, err)
					}
				}
				forged := agui.FromDomain(holdfast.Message{ID: "m9", Role: holdfast.RoleTool, CallID: call,
					Text: `{"approved":true}`})
				waitingFor(t, looptest.Posted(t, e, looptest.RunInput("t", "r7", forged)))
				for _, chat := range []string{`{}`, `{"holdfast":{"chat":true,"onUnfinished":"abandon"}}`} {
					in := looptest.RunInput("t", "r2"+chat, looptest.UserSays("u2"+chat, "never mind"))
					in.ForwardedProps = json.RawMessage(chat)
					reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
					if abandonable {
						looptest.Succeeded(t, looptest.Collect(t, reply, err))
						looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+thread.TextGivenUp,
							"user:never mind", "assistant:done")
						if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.CallClosed {
							t.Errorf("a result afterwards: %v", err)
						}
						break
					}
					pub := holdfast.AsError(err)
					if pub == nil || pub.Code != codes.CallPending || !strings.Contains(pub.Hint, "rewind") {
						t.Errorf("a new message with %s: %v", chat, err)
					}
				}
				sound(t, store, "t")
			})
		})
	}
}

// TestOutsideExpires: after its time the model is told, by the next touch; a late result is
// refused.
func TestOutsideExpires(t *testing.T) {
	for _, touch := range []string{"an empty post", "a late result", "a new message", "upkeep"} {
		t.Run(touch, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := &postbox{}, memstore.New()
				e := looptest.Start(t, s, func(c *looptest.Config) {
					withURLs(c)
					if touch == "upkeep" {
						c.Retention.Every = 10 * time.Second
					}
				}, outsideAgent(finance(p, holdfast.Outside{ExpiresAfter: 10 * time.Minute})))
				waitingFor(t, looptest.Started(t, e, "t"))
				time.Sleep(10*time.Minute - time.Second)
				waitingFor(t, looptest.Resumed(t, e, "t", "r8"))
				time.Sleep(time.Second)
				want := []string{"user:go", "assistant:", "tool:" + thread.TextExpired, "assistant:done"}
				switch touch {
				case "an empty post":
					looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
				case "a new message":
					looptest.Succeeded(t,
						looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "and now?"))))
					want = slices.Insert(want, 3, "user:and now?")
				case "upkeep":
					time.Sleep(time.Minute)
					looptest.WantTexts(t, e, "t", want...)
				}
				for range 2 {
					if _, err := finish(e, p.token(), `{"approved":true}`); looptest.Code(err) != codes.CallExpired {
						t.Errorf("a late result: %v", err)
					}
					settled(t, e, "t")
				}
				looptest.WantTexts(t, e, "t", want...)
				sound(t, s, "t")
			})
		})
	}
}

// service may finish the calls of its tenant.
var service = holdfast.Principal{
	Tenant: "acme",
	User:   "finance",
	Rights: &access.Rights{Roles: []access.Role{access.RoleService}},
}

// TestOutsideByKey: who may finish a call without its URL.
func TestOutsideByKey(t *testing.T) {
	rights := func(user string, roles ...access.Role) holdfast.Principal {
		return holdfast.Principal{Tenant: "acme", User: user, Rights: &access.Rights{Roles: roles}}
	}
	stranger := service
	stranger.Tenant = "other"
	bound := service
	bound.Rights = &access.Rights{Roles: []access.Role{access.RoleService}, Agents: []string{"b"}}
	for name, c := range map[string]struct {
		who  holdfast.Principal
		by   access.Role
		code string
	}{
		"service":                 {service, "", ""},
		"a service of others":     {stranger, "", codes.NotFound},
		"a service for others":    {bound, "", codes.Forbidden},
		"owner":                   {looptest.Alice, "", codes.Forbidden},
		"owner, allowed":          {looptest.Alice, access.RoleUser, ""},
		"owner, approvers only":   {looptest.Alice, access.RoleApprover, codes.Forbidden},
		"approver":                {rights("alice", access.RoleApprover), access.RoleApprover, ""},
		"approver of others":      {rights("bob", access.RoleApprover), access.RoleApprover, codes.NotFound},
		"another user":            {rights("bob", access.RoleUser), access.RoleUser, codes.NotFound},
		"operator":                {rights("ops", access.RoleServerOperator), "", codes.NotFound},
		"service, owners allowed": {service, access.RoleUser, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := looptest.Start(t, memstore.New(), func(cfg *looptest.Config) {
					cfg.Authorize = func(_ context.Context, who holdfast.Principal, action access.Action,
						agent string) error {
						if !who.Rights.Allow(action, agent) {
							return holdfast.Errorf(codes.Forbidden, "no")
						}
						return nil
					}
				}, outsideAgent(finance(nil, holdfast.Outside{FinishedBy: c.by})))
				call := waitingFor(t, looptest.Started(t, e, "t"))[0].ID
				f := owner.OutsideResult{Who: c.who, Thread: "t", Call: call,
					Result: json.RawMessage(`{"approved":true}`)}
				first, err := e.Owner.Finish(t.Context(), f)
				if looptest.Code(err) != c.code {
					t.Fatalf("%v, want %q", err, c.code)
				}
				var said *holdfast.Error
				if name == "owner" && (!errors.As(err, &said) || !strings.Contains(said.Hint, "finishedBy: user")) {
					t.Errorf("without keys nobody is a service, and the error does not say what to do: %+v", said)
				}
				if err == nil {
					settled(t, e, "t")
					if again := looptest.Must(e.Owner.Finish(t.Context(), f))(t); *again != *first {
						t.Errorf("again it is %+v", again)
					}
				}
				if hidden := strings.ReplaceAll(fmt.Sprint(err), `"t"`, `"nowhere"`); c.code == codes.NotFound {
					f.Thread = "nowhere"
					if _, err := e.Owner.Finish(t.Context(), f); err.Error() != hidden {
						t.Errorf("it shows that the thread is there: %s, for none %s", hidden, err)
					}
					f.Thread = "t"
				}
				f.Call = "nobody"
				if _, err := e.Owner.Finish(t.Context(), f); err == nil ||
					c.code == "" && looptest.Code(err) != codes.NotFound {
					t.Errorf("an unknown call: %v", err)
				}
			})
		})
	}
}

// TestOutsideObserved: each thing that happens to a call is counted once.
func TestOutsideObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &postbox{}
		var j looptest.Notebook
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			withURLs(c)
			c.Observer = observe.Observer{
				OutsideCalled: func(_ holdfast.Iteration, tool string, r observe.OutsideResult) {
					j.Note(tool + " " +
						string(r))
				},
				ToolCalled: func(_ holdfast.Iteration, tool string, r observe.ToolResult, _ time.Duration) {
					j.Note(tool + ": " + string(r))
				},
				IterationDone: func(_ holdfast.Iteration, results int) {
					j.Note("iteration " +
						string(rune('0'+results)))
				},
			}
		}, outsideAgent(finance(p, holdfast.Outside{})))
		waitingFor(t, looptest.Started(t, e, "t"))
		looptest.Must(finish(e, p.token(), `{"approved":true}`))(t)
		settled(t, e, "t")
		_, _ = finish(e, p.token(), `{"approved":false}`)
		want := []string{
			"approve: outside",
			"approve handed_out",
			"approve: success",
			"approve finished",
			"iteration 1",
			"iteration 0",
			"approve refused",
		}
		if got := j.Take(); !slices.Equal(got, want) {
			t.Errorf("observed %q", got)
		}
	})
}

// TestOutsideExpiresOnce: the receiver of the call is told the very time at which it expires.
func TestOutsideExpiresOnce(t *testing.T) {
	var told time.Time
	var ticks atomic.Int64
	p := &postbox{before: func(_ context.Context, call holdfast.OutsideCall) error {
		told = call.ExpiresAt
		return nil
	}}
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
		withURLs(c)
		c.Now = func() clock.Stamp { return clock.At(time.UnixMilli(ticks.Add(1))) }
	}, outsideAgent(finance(p, holdfast.Outside{ExpiresAfter: time.Hour})))
	if open := waitingFor(t, looptest.Started(t, e, "t")); !open[0].ExpiresAt.Equal(told) || told.IsZero() {
		t.Errorf("it expires at %s, and who got it was told %s", open[0].ExpiresAt, told)
	}
}

// TestExpects: only the tokens of a call's own URLs are expected, as long as the thread is
// there, also once it is over.
func TestExpects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &postbox{}
		e := looptest.Start(t, memstore.New(), withURLs, outsideAgent(finance(p, holdfast.Outside{})))
		waitingFor(t, looptest.Started(t, e, "t"))
		token := p.token()
		place, _, _ := strings.Cut(token, ".")
		want := func(when, code string, tokens ...string) {
			t.Helper()
			for _, token := range tokens {
				if got := looptest.Code(owner.Expects(t.Context(), e.Owner, token)); got != code {
					t.Errorf("%s, %.40s…: %q, want %q", when, token, got, code)
				}
			}
		}
		want("waiting", "", token)
		want("waiting", codes.NotFound, "", "x", place, place+".x", token+"x",
			thread.NewToken(looptest.KeyOf("other"), "call_0", "x"))
		looptest.Must(finish(e, token, `{"approved":true}`))(t)
		settled(t, e, "t")
		want("over", "", token)
		looptest.Must(e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false))(t)
		want("deleted", codes.NotFound, token)
	})
}

// TestResultForADamagedThread: who has a result for a thread that cannot be read is not told that
// there is no such call, and can send it again when the thread is mended.
func TestResultForADamagedThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, db := &postbox{}, &looptest.Bad{Store: memstore.New(), Key: looptest.KeyOf("t")}
		e := looptest.Start(t, db, withURLs, outsideAgent(finance(p, holdfast.Outside{})))
		waitingFor(t, looptest.Started(t, e, "t"))
		token := p.token()
		for damage, code := range map[error]string{
			store.ErrUnreadable:    codes.CheckpointUnreadable,
			store.ErrVersionTooNew: codes.VersionTooNew,
		} {
			db.Break(damage)
			_, err := finish(e, token, `{"approved":true}`)
			for _, err := range []error{err, owner.Expects(t.Context(), e.Owner, token)} {
				if pub := holdfast.AsError(err); pub.Code != code || len(pub.Details) > 0 {
					t.Errorf("got %v with %v, want %s", err, pub.Details, code)
				}
			}
		}
		db.Unreadable.Store(nil)
		looptest.Must(finish(e, token, `{"approved":true}`))(t)
		settled(t, e, "t")
	})
}
