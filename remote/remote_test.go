package remote_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/remote"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// start starts a server whose agent is the script.
func start(t *testing.T, s *script, o remote.Options, tools ...holdfast.Tool) *agenttest.Harness {
	t.Helper()
	return agenttest.New(t, agenttest.Config{
		Model: s.agent(o),
		Tools: tools,
		Agent: holdfast.Agent{State: &sharedstate.Options{Show: "all"}},
	})
}

// want compares how a request ended, and its history.
func want(t *testing.T, r *agenttest.Result, outcome agenttest.Outcome, messages string) {
	t.Helper()
	if r.Outcome != outcome {
		t.Errorf("the outcome is %s (%s %s), want %s", r.Outcome, r.Message, r.Hint, outcome)
	}
	if got := history(r.Messages); got != messages {
		t.Errorf("the history is\n%s\nwant\n%s", got, messages)
	}
}

// types returns the types of a result's events, without RUN_STARTED.
func types(r *agenttest.Result) string {
	var all []string
	for _, e := range r.Events {
		all = append(all, e.Type)
	}
	return strings.Join(all, " ")
}

// TestRun: an agent's messages, its own calls and their results become the history, and the next post
// has them under the agent's own ids.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			started+says("m1", "Let me look.")+calls("c1", "search", `{"q":1}`)+results("c1", "found")+
				says("m2", "It is there.")+finished,
			started+says("m3", "Yes.")+finished)
		h := start(t, s, remote.Options{})
		want(t, h.Run("where?"), agenttest.Success,
			`u:where? | a:Let me look. search{"q":1} | t:found | a:It is there.`)
		r := h.Run("really?")
		want(t, r, agenttest.Success, `u:where? | a:Let me look. search{"q":1} | t:found | a:It is `+
			`there. | u:really? | a:Yes.`)
		posts := s.posts()
		var ids []string
		for _, m := range posts[1].Messages {
			ids = append(ids, m.ID)
		}
		if got := strings.Join(ids[1:4], " "); got != "m1 res-c1 m2" {
			t.Errorf("the agent's messages come back as %q", got)
		}
		if posts[0].ThreadID == "t" || posts[0].ThreadID != posts[1].ThreadID || posts[0].RunID == posts[1].RunID {
			t.Errorf("the posts are of %q %q and %q %q", posts[0].ThreadID, posts[0].RunID, posts[1].ThreadID,
				posts[1].RunID)
		}
	})
}

// TestOurTools: the agent's tools here are offered, carried out when the agent's run has ended, and the
// agent is posted to again with the results; those of the page are left to the page.
func TestOurTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			started+calls("c1", "search", `{}`)+results("c1", "found")+calls("c2", "pay", `{}`)+
				calls("c3", "show", `{}`)+finished,
			started+says("m", "Done.")+finished)
		pay := holdfast.NewTool("pay", "pays", func(context.Context, struct{}) (string, error) { return "paid", nil })
		h := agenttest.New(t, agenttest.Config{
			Model: s.agent(remote.Options{}), Tools: []holdfast.Tool{pay},
			FrontendTools: []holdfast.ToolSpec{{Name: "show"}},
		})
		r := h.Run("pay")
		want(t, r, agenttest.Success, `u:pay | a: search{} | t:found | a: pay{} show{} | t:paid`)
		if len(r.FrontendCalls) != 1 || len(r.Started) != 1 {
			t.Fatalf("%d calls wait for the page, and %d were started here", len(r.FrontendCalls), len(r.Started))
		}
		want(t, h.Deliver(r.FrontendCalls[0], "shown"), agenttest.Success,
			`u:pay | a: search{} | t:found | a: pay{} show{} | t:paid | t:shown | a:Done.`)
		if got := s.posts()[0].Tools; len(got) < 2 {
			t.Errorf("the agent was offered %v", got)
		}
	})
}

// TestCut: what was complete stays, half a message is taken back once, and the agent is asked again
// with what stands.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			started+says("m1", "One.")+calls("c1", "search", `{}`)+results("c1", "found")+
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"half a"}`,
			"status it restarts",
			started+says("m3", "Whole.")+finished)
		h := start(t, s, remote.Options{})
		r := h.Run("go")
		want(t, r, agenttest.Success, `u:go | a:One. search{} | t:found | a:Whole.`)
		if n := strings.Count(types(r), "MESSAGES_SNAPSHOT"); n != 1 {
			t.Errorf("%d snapshots: %s", n, types(r))
		}
		if got := len(s.posts()[2].Messages); got != 3 {
			t.Errorf("the agent was asked again with %d messages, want 3", got)
		}
	})
}

// TestCutWithinACall: onCut decides what becomes of a call of the agent's own that had begun.
func TestCutWithinACall(t *testing.T) {
	for name, c := range map[string]struct {
		o       remote.Options
		outcome agenttest.Outcome
		history string
	}{
		"ask": {remote.Options{}, agenttest.Interrupt, `u:go | a:I pay. charge{"n":1}`},
		"fail": {remote.Options{OnCut: "fail"}, agenttest.Failed,
			`u:go | a:I pay. charge{"n":1} | t:The agent was lost while it was carrying out charge, ` +
				`which may have taken effect.`},
		"retry": {remote.Options{OnCut: "retry"}, agenttest.Success,
			`u:go | a:I pay. charge{"n":1} | t:Outcome unknown: no answer came back from this call. It may have ` +
				`taken effect, and it was not started again. Check before you repeat it. | a:Whole.`},
		"pure": {remote.Options{Effects: map[string]holdfast.Effect{"charge": holdfast.EffectPure}}, agenttest.Success,
			`u:go | a:Whole.`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, started+says("m1", "I pay.")+calls("c1", "charge", `{"n":1}`),
					started+says("m2", "Whole.")+finished)
				h := start(t, s, c.o)
				r := h.Run("go")
				want(t, r, c.outcome, c.history)
				if name != "ask" {
					return
				}
				want(t, h.AnswerAll(map[string]string{"outcome": "happened", "result": "charged"}), agenttest.Success,
					`u:go | a:I pay. charge{"n":1} | t:charged | a:Whole.`)
			})
		})
	}
}

// TestLossesEnd: an agent that dies in each of its calls is asked again with pauses, and not for ever.
func TestLossesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := started + calls("c1", "charge", `{}`)
		s := newScript(t, cut, cut, cut)
		r := start(t, s, remote.Options{OnCut: "retry"}).Run("go")
		if r.Outcome != agenttest.Failed || r.Code != "model_failed" || len(s.posts()) != 3 {
			t.Errorf("%s %s after %d posts: %s", r.Outcome, r.Code, len(s.posts()), history(r.Messages))
		}
	})
}

// TestDeath: this server dies within a message, within a call that the agent carries out, and
// between two messages. The next process posts what stands, and nothing is said twice.
func TestDeath(t *testing.T) {
	for name, c := range map[string]struct {
		run     string
		answer  bool
		history string
	}{
		"within words": {says("m1", "One.") + calls("c1", "search", `{}`) + results("c1", "found") +
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"half a"}` + "\n[die]\n", false,
			`u:go | a:One. search{} | t:found | a:Whole.`},
		"within a call": {says("m1", "One.") + calls("c1", "charge", `{}`) + "[die]\n", true,
			`u:go | a:One. charge{} | t:charged | a:Whole.`},
		"within one of two calls": {calls("c1", "charge", `{}`) + calls("c2", "charge", `{"n":2}`) +
			results("c1", "ok") +
			"[die]\n", true, `u:go | a: charge{} charge{"n":2} | t:ok | t:charged | a:Whole.`},
		"after a message": {says("m1", "One.") + calls("c1", "search", `{}`) + results("c1", "found") +
			says("m2", "Two.") + `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m3","delta":"half a"}` + "\n[die]\n",
			false,
			`u:go | a:One. search{} | t:found | a:Two. | a:Whole.`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, started+c.run, started+says("m9", "Whole.")+finished)
				h := start(t, s, remote.Options{})
				go func() {
					<-s.reached
					time.Sleep(time.Second)
					h.Crash()
				}()
				if r := h.Run("go"); r.Outcome != agenttest.Cut {
					t.Fatalf("the outcome is %s", r.Outcome)
				}
				h.Restart()
				r := h.Resume()
				if c.answer {
					if len(r.Questions) != 1 {
						t.Fatalf("%d questions are open: %s %s", len(r.Questions), r.Outcome, history(r.Messages))
					}
					r = h.AnswerAll(map[string]string{"outcome": "happened", "result": "charged"})
				}
				want(t, r, agenttest.Success, c.history)
			})
		})
	}
}

// TestCancel: a cancel closes the request, keeps what was said, and says of a call that work there may
// go on.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, started+says("m1", "One.")+calls("c1", "charge", `{}`)+"[wait]\n")
		h := start(t, s, remote.Options{})
		go func() {
			<-s.reached
			time.Sleep(time.Second)
			h.Request("POST", "/threads/t/runs/run1/cancel", nil).Body.Close()
		}()
		want(t, h.Run("go"), agenttest.Cancelled,
			`u:go | a:One. charge{} | t:No result: the run was cancelled while the agent carried this call out. It `+
				`may still take effect there.`)
		<-s.left
	})
}

// TestBeside: the shared state changes as the agent says, and is posted to it; steps, activities, RAW
// and CUSTOM are passed on.
func TestBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, started+
			`{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}
{"type":"STEP_STARTED","stepName":"plan"}
{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":2}]}
{"type":"STEP_FINISHED","stepName":"plan"}
{"type":"ACTIVITY_SNAPSHOT","messageId":"a1","activityType":"plan","content":{"done":0}}
{"type":"ACTIVITY_DELTA","messageId":"a1","activityType":"plan","patch":[{"op":"replace","path":"/done","value":1}]}
{"type":"CUSTOM","name":"acme.note","value":null}
{"type":"CUSTOM","name":"holdfast.retry","value":1}
{"type":"RAW","event":{"x":1}}
{"type":"META_EVENT","x":1}
`+says("m1", "Done.")+finished,
			started+says("m2", "Yes.")+finished)
		h := start(t, s, remote.Options{})
		r := h.Run("go")
		if r.Outcome != agenttest.Success {
			t.Fatal(r.Outcome, r.Message, r.Hint)
		}
		for _, w := range []string{"STATE_SNAPSHOT STEP_STARTED STATE_", "STEP_FINISHED", "CUSTOM RAW RAW RAW",
			"ACTIVITY_"} {
			if !strings.Contains(types(r), w) {
				t.Errorf("there is no %q in %s", w, types(r))
			}
		}
		h.Run("and?")
		if got := string(s.posts()[1].State); got != `{"n":2}` {
			t.Errorf("the agent is posted the state %s", got)
		}
	})
}

// TestQuestions: what an agent asks is asked here, one question after the other, and the agent is posted
// all answers together.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			started+says("m1", "I pay.")+calls("c1", "charge", `{"n":1}`)+
				`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[`+
				`{"id":"i1","reason":"tool_call","message":"Charge?","toolCallId":"c1"},{"id":"i2",`+
				`"reason":"confirmation"}]}}`,
			started+results("c1", "charged")+says("m2", "Paid.")+finished)
		h := start(t, s, remote.Options{})
		r := h.Run("pay")
		if r.Outcome != agenttest.Interrupt || len(r.Questions) != 1 || r.Questions[0].Message != "Charge?" {
			t.Fatalf("%s %+v %s", r.Outcome, r.Questions, history(r.Messages))
		}
		h.Restart()
		if r = h.AnswerAll(map[string]bool{"approved": true}); r.Outcome != agenttest.Interrupt {
			t.Fatalf("%s %s", r.Outcome, r.Hint)
		}
		want(t, h.AnswerAll("yes"), agenttest.Success,
			`u:pay | a:I pay. charge{"n":1} | t:No result yet: the agent asks a person first. | a: `+
				`charge{"n":1} | t:charged | a:Paid.`)
		given := s.posts()[1].Resume
		if len(given) != 2 || given[0].InterruptID != "i1" || string(given[0].Payload) != `{"approved":true}` ||
			given[1].InterruptID != "i2" || given[1].Status != "resolved" {
			t.Errorf("the agent is posted the answers %+v", given)
		}
		for _, m := range s.posts()[1].Messages {
			if m.Role == "tool" {
				t.Errorf("the agent is posted a result of the call that it asks about: %s", m.Content)
			}
		}
	})
}

// TestDeclined: a person who declines one question is asked no other, and the agent is told.
func TestDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t,
			started+`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[`+
				`{"id":"i1","reason":"confirmation"},{"id":"i2","reason":"confirmation"}]}}`,
			started+says("m", "Then not.")+finished)
		h := start(t, s, remote.Options{})
		h.Run("pay")
		want(t, h.Decline(), agenttest.Success, `u:pay | a:Then not.`)
		given := s.posts()[1].Resume
		if len(given) != 2 || given[0].Status != "cancelled" || given[1].Status != "cancelled" {
			t.Errorf("the agent is posted the answers %+v", given)
		}
	})
}

// TestGivenUp: a new message gives a call of the agent's own up that is in doubt. Its result does not say
// that nothing was begun, and is not sent back as one of this server's.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, started+says("m1", "I pay.")+calls("c1", "charge", `{}`),
			started+says("m2", "Well.")+finished)
		h := agenttest.New(t, agenttest.Config{
			Model: s.agent(remote.Options{History: "new"}),
			Agent: holdfast.Agent{Policy: holdfast.Policy{Chat: true}},
		})
		if r := h.Run("go"); r.Outcome != agenttest.Interrupt {
			t.Fatal(r.Outcome, r.Hint)
		}
		r := h.Run("never mind")
		if r.Outcome != agenttest.Success || len(r.Messages) != 5 {
			t.Fatal(r.Outcome, r.Hint, history(r.Messages))
		}
		if said := string(r.Messages[2].Metadata); strings.Contains(said, "notRun") ||
			!strings.Contains(said, "remote") {
			t.Errorf("the result is marked %s", said)
		}
		if got := s.posts()[1].Messages; len(got) != 1 || got[0].Role != "user" {
			t.Errorf("the agent was sent %+v", got)
		}
	})
}

// TestNew: an agent that keeps the conversation is sent only what it has not seen, and after a cut what
// it was last asked.
func TestNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, started+calls("c1", "search", `{}`)+results("c1", "found"),
			started+calls("c2", "pay", `{}`)+finished, started+says("m", "Done.")+finished,
			started+says("m2", "Bye.")+finished)
		pay := holdfast.NewTool("pay", "pays", func(context.Context, struct{}) (string, error) { return "paid", nil })
		h := start(t, s, remote.Options{History: "new"}, pay)
		h.Run("one")
		h.Run("two")
		var got []string
		for _, p := range s.posts() {
			roles := ""
			for _, m := range p.Messages {
				roles += m.Role + " "
			}
			got = append(got, roles)
		}
		if all := strings.Join(got, "| "); all != "user | user | tool | user " {
			t.Errorf("the agent was sent %q", all)
		}
	})
}

// TestOptions: what is wrong with the options is said by name.
func TestOptions(t *testing.T) {
	for in, part := range map[string]remote.Options{
		"url: ":     {},
		"only sche": {URL: "http://a:b@host/"},
		"history: ": {URL: "http://host", History: "some"},
		"onCut: ":   {URL: "http://host", OnCut: "stop"},
		"effects: ": {URL: "http://host", Effects: map[string]holdfast.Effect{"a": "twice"}},
		"timeout: ": {URL: "http://host", Timeout: -1},
		"headers: ": {URL: "http://host", Headers: map[string]string{"a b": "c"}},
	} {
		if _, err := remote.New(part); err == nil || !strings.Contains(err.Error(), in) {
			t.Errorf("%+v: %v, want %q", part, err, in)
		}
	}
}

// TestCircle: agents that ask each other in a circle come to an end.
func TestCircle(t *testing.T) {
	run, posts := "r", 0
	for range 20 {
		s := newScript(t, started+finished)
		req := &holdfast.ModelRequest{Thread: "t", Run: run}
		for _, err := range s.agent(remote.Options{}).Stream(t.Context(), req) {
			if err != nil && !strings.Contains(err.Error(), "circle") {
				t.Error(err)
			}
		}
		if len(s.posts()) == 0 {
			break
		}
		posts++
		run = s.posts()[0].RunID
	}
	if posts != 8 {
		t.Errorf("a request went through %d servers, want 8", posts)
	}
}
