package remote

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// FuzzStream reads what an agent may send. The deltas follow the rules by which the loop takes them, and
// nothing panics.
func FuzzStream(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	a, err := New(Options{URL: "http://localhost"})
	if err != nil {
		f.Fatal(err)
	}
	req := &holdfast.ModelRequest{
		Tools: []holdfast.ToolSpec{{Name: "page"}},
		Messages: []holdfast.Message{{Role: holdfast.RoleAssistant,
			Calls: []holdfast.ToolCall{{ID: "call_1", Name: "b"}}}},
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var body strings.Builder
		for line := range strings.Lines(lines) {
			body.WriteString("data: " + strings.TrimSpace(line) + "\n\n")
		}
		rules := &rules{t: t, calls: map[int]*seen{}}
		in := &input{known: map[string]bool{"u": true}, asked: map[string]bool{"call_1": true}}
		_ = a.client.Read(strings.NewReader(body.String()), rules.take,
			func(answer *modelhttp.Answer) modelhttp.Parser {
				return newStream(answer, a, req, in)
			})
	})
}

// rules check the deltas of an answer.
type rules struct {
	t     *testing.T
	calls map[int]*seen
	over  bool
	some  bool // something is in the message
}

// seen is a call.
type seen struct {
	id        string
	own, done bool // it is the agent's own; its message is complete
	result    bool
}

// take takes the next delta.
func (r *rules) take(d holdfast.Delta, _ error) bool {
	if r.over {
		r.t.Fatalf("%+v follows the end", d)
	}
	if d.Text != "" || d.Reasoning != "" || d.ReasoningSecret != "" || d.Call != nil {
		r.some = true
	}
	switch {
	case d.Call != nil:
		r.call(d.Call)
	case d.Result != nil:
		r.result(d.Result.CallID)
	case d.More:
		if !r.some {
			r.t.Fatal("a message without anything in it is complete")
		}
		r.some = false
		for _, c := range r.calls {
			c.done = true
		}
	}
	r.over = d.Finish != ""
	return true
}

func (r *rules) call(d *holdfast.CallDelta) {
	c := r.calls[d.Index]
	switch {
	case c == nil && d.Name == "":
		r.t.Fatalf("a call begins without a name: %+v", d)
	case c == nil:
		c = &seen{id: d.ID}
		r.calls[d.Index] = c
	case c.done || c.own && d.Arguments != "":
		r.t.Fatalf("a call goes on that is complete: %+v", d)
	}
	c.own = c.own || d.Own != nil
}

func (r *rules) result(id string) {
	for _, c := range r.calls {
		if c.id == id && c.own && c.done && !c.result {
			c.result = true
			return
		}
	}
	r.t.Fatalf("there is a result of %q, which waits for none", id)
}

// TestThreadIDs: the agent can tell conversations of all users apart, and runs beside them. The ids are
// UUIDs, because LangGraph's server refuses others.
func TestThreadIDs(t *testing.T) {
	ann := holdfast.Iteration{Principal: holdfast.Principal{Tenant: "a", User: "b"}}
	bob := holdfast.Iteration{Principal: holdfast.Principal{Tenant: "a", User: "c"}}
	again, side := ann, ann
	again.Incarnation, side.Side = "2", true
	ids := map[string]bool{}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for _, id := range []string{
		threadID(&ann, "t", "r1"), threadID(&ann, "t2", "r1"), threadID(&bob, "t", "r1"), threadID(&again, "t", "r1"),
		threadID(&side, "t", "r1"), threadID(&side, "t", "r2"),
	} {
		ids[id] = true
		if !uuid.MatchString(id) {
			t.Errorf("%q is no UUID", id)
		}
	}
	if len(ids) != 6 || !ids[threadID(&ann, "t", "r2")] {
		t.Errorf("the ids are %v", ids)
	}
}
