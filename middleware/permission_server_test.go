package middleware_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/server"
)

// permissionServer is a server whose model calls what the last message says, one
// call a line, and then tells what the calls came to.
type permissionServer struct {
	t   *testing.T
	url string

	mu  sync.Mutex
	ran []string
}

type refundArgs struct {
	Amount int `json:"amount"`
}

func openPermissionServer(t *testing.T, store string, o middleware.ToolPermissionOptions) (*permissionServer, func()) {
	t.Helper()
	p := &permissionServer{t: t}
	refund := holdfast.NewTool("refund", "Refunds an amount.", p.refund, holdfast.WithEffect(holdfast.EffectOnce))
	look := holdfast.NewTool("look", "Looks.", func(context.Context, struct{}) (string, error) { return p.note("looked"), nil })
	s, err := server.New(server.Config{
		Store: store, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Agents: []holdfast.Agent{{
			Name: "shop", Model: holdfast.ModelFunc(permissionModel), Tools: []holdfast.Tool{refund, look},
			Middleware: []holdfast.Middleware{middleware.ToolPermission(o)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	p.url = h.URL
	return p, func() {
		h.CloseClientConnections()
		h.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func (p *permissionServer) note(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran = append(p.ran, what)
	return what
}

// refund asks a question of its own above 100, and changes the shared state.
func (p *permissionServer) refund(ctx context.Context, a refundArgs) (string, error) {
	answer := holdfast.CallFrom(ctx).Answer
	if a.Amount > 100 && answer == nil {
		return "", &holdfast.Interrupt{Reason: "input_required", Message: "To which account?"}
	}
	to := ""
	if answer != nil {
		to = " to " + string(answer.Payload)
	}
	err := holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
		return json.Marshal(map[string]int{"refunded": a.Amount})
	})
	return p.note(fmt.Sprintf("refunded %d%s", a.Amount, to)), err
}

func permissionModel(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == holdfast.RoleTool {
			yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
			return
		}
		for i, line := range strings.Split(last.Text, "\n") {
			name, args, _ := strings.Cut(line, " ")
			if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: args}}, nil) {
				return
			}
		}
		yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
	}
}

// permissionStream is what a POST has shown.
type permissionStream struct {
	results   []string
	questions []permissionQuestion
	notices   []string
	last      string
}

type permissionQuestion struct {
	ID, Reason, Message string
	Metadata            struct{ Arguments struct{ Amount int } }
}

// post sends a message, or answers: payloads by the id of the question.
func (p *permissionServer) post(thread, run, text string, answers map[string]string) permissionStream {
	p.t.Helper()
	type object = map[string]any
	body := object{"threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": []object{}}
	if text != "" {
		body["messages"] = []object{{"id": "m_" + run, "role": "user", "content": text}}
	}
	var resume []object
	for id, payload := range answers {
		resume = append(resume, object{"interruptId": id, "status": "resolved", "payload": json.RawMessage(payload)})
	}
	if resume != nil {
		body["resume"] = resume
	}
	b, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.Post(p.url+"/runs", "application/json", strings.NewReader(string(b)))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var s permissionStream
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			s.read(p.t, data)
		}
	}
	if s.last != "RUN_FINISHED" {
		p.t.Errorf("%s: %d, the stream ends in %q", run, res.StatusCode, s.last)
	}
	slices.Sort(s.results)
	return s
}

func (p *permissionServer) get(path string) string {
	p.t.Helper()
	res, err := http.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func (s *permissionStream) read(t *testing.T, data string) {
	t.Helper()
	var ev struct {
		Type, Name, Content string
		Outcome             struct{ Interrupts []permissionQuestion }
	}
	if err := json.Unmarshal([]byte(data), &ev); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	s.last = ev.Type
	switch ev.Type {
	case "TOOL_CALL_RESULT":
		s.results = append(s.results, ev.Content)
	case "CUSTOM":
		if strings.HasPrefix(ev.Name, "holdfast.permission") {
			s.notices = append(s.notices, ev.Name)
		}
	case "RUN_FINISHED":
		s.questions = ev.Outcome.Interrupts
	}
}

var askAboutRefunds = middleware.ToolPermissionOptions{Rules: []middleware.PermissionRule{
	{Tool: "refund", Args: map[string]middleware.Condition{"amount": {Above: new(float64(1000))}}, Then: middleware.PermissionDeny, Reason: "too much."},
	{Tool: "refund", Then: middleware.PermissionAsk, Remember: []middleware.PermissionScope{middleware.PermissionThread, middleware.PermissionUser}},
	{Tool: "*", Then: middleware.PermissionAllow},
}}

// TestPermissionPartialApproval: of parallel calls those that are allowed run at
// once, each of the others is asked about, all are answered in one request, and a
// tool that asks something itself is not asked about again.
func TestPermissionPartialApproval(t *testing.T) {
	p, stop := openPermissionServer(t, "memory:", askAboutRefunds)
	defer stop()
	s := p.post("t", "r1", "look {}\nrefund {\"amount\":50}\nrefund {\"amount\":60}\nrefund {\"amount\":5000}\nrefund {\"amount\":200}", nil)
	if !slices.Equal(s.results, []string{"Not allowed: too much.", "looked"}) || len(s.questions) != 3 || !slices.Equal(s.notices, []string{"holdfast.permission_denied"}) {
		t.Fatalf("got %+v", s)
	}
	answers := map[string]string{}
	for _, q := range s.questions {
		if q.Reason != "holdfast:permission" || q.Message != "May the agent call refund?" {
			t.Errorf("got %+v", q)
		}
		answers[q.ID] = fmt.Sprintf(`{"allow":%v,"reason":"not today"}`, q.Metadata.Arguments.Amount != 60)
	}
	s = p.post("t", "r2", "", answers)
	if !slices.Equal(s.results, []string{"The person did not allow this call: not today", "refunded 50"}) || len(s.questions) != 1 || s.questions[0].Message != "To which account?" {
		t.Fatalf("got %+v", s)
	}
	if state := p.get("/threads/t/state"); !strings.Contains(state, `"refunded":50`) {
		t.Errorf("what the tool did to the shared state is lost: %s", state)
	}
	s = p.post("t", "r3", "", map[string]string{s.questions[0].ID: `"ann"`})
	if !slices.Equal(s.results, []string{`refunded 200 to "ann"`}) || len(s.questions) != 0 {
		t.Fatalf("got %+v", s)
	}
	if want := []string{"looked", "refunded 50", `refunded 200 to "ann"`}; !slices.Equal(p.ran, want) {
		t.Errorf("got %q, want %q", p.ran, want)
	}
	// Nothing was remembered.
	if s = p.post("t", "r4", "refund {\"amount\":50}", nil); len(s.questions) != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestPermissionSurvivesARestart: a question is answered at another process than
// asked it, and what is remembered holds for the thread, or for all of the user's.
func TestPermissionSurvivesARestart(t *testing.T) {
	store := "bolt:" + filepath.Join(t.TempDir(), "holdfast.db")
	for i, tt := range []struct{ remember, elsewhere string }{{"thread", ""}, {"user", "refunded 70"}} {
		thread := fmt.Sprintf("t%d", i)
		p, stop := openPermissionServer(t, store, askAboutRefunds)
		s := p.post(thread, "r1", "refund {\"amount\":50}", nil)
		stop()
		if len(s.questions) != 1 {
			t.Fatalf("got %+v", s)
		}
		p, stop = openPermissionServer(t, store, askAboutRefunds)
		s = p.post(thread, "r2", "", map[string]string{s.questions[0].ID: fmt.Sprintf(`{"allow":true,"remember":%q}`, tt.remember)})
		stop()
		if !slices.Equal(s.results, []string{"refunded 50"}) || !slices.Equal(s.notices, []string{"holdfast.permission_remembered"}) {
			t.Fatalf("got %+v", s)
		}
		p, stop = openPermissionServer(t, store, askAboutRefunds)
		if s = p.post(thread, "r3", "refund {\"amount\":60}", nil); !slices.Equal(s.results, []string{"refunded 60"}) {
			t.Errorf("%s: the same thread: %+v", tt.remember, s)
		}
		s = p.post(thread+"other", "r4", "refund {\"amount\":70}", nil)
		if got := strings.Join(s.results, ""); got != tt.elsewhere {
			t.Errorf("%s: another thread: %+v", tt.remember, s)
		}
		stop()
	}
}
