package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-agents/holdfast"
)

// The paper's four scenarios, over HTTP and on a Redis that needs no redis-server. The content
// of Redis meanwhile is looked at by its keys.

// lookAndWait is an agent that makes two calls at once, of which the second waits, and then
// answers.
func lookAndWait(ran *atomic.Int32, release <-chan struct{}) holdfast.Agent {
	look := holdfast.NewTool("look", "looks", func(context.Context, struct{}) (string, error) {
		ran.Add(1)
		return "seen", nil
	})
	wait := holdfast.NewTool("wait", "waits", func(ctx context.Context, _ struct{}) (string, error) {
		ran.Add(1)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return "waited", ctx.Err()
	})
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if len(req.Messages) > 1 {
				yield(holdfast.Delta{Text: "all done", Finish: holdfast.FinishStop}, nil)
				return
			}
			_ = yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: 0, ID: "c1", Name: "look", Arguments: "{}"}},
				nil) && yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Index: 1, ID: "c2", Name: "wait", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{look, wait}}
}

// posted posts to /runs and returns the answer, whose body the caller reads.
func posted(t *testing.T, url, body string) *http.Response {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// event is an event of a stream, as far as this test reads it.
type event struct {
	Type       string
	RunID      string
	ToolCallID string
}

// events yields the events of a stream.
func events(t *testing.T, res *http.Response) iter.Seq[event] {
	return func(yield func(event) bool) {
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var ev event
			if err := json.Unmarshal([]byte(data), &ev); err != nil {
				t.Fatal(err)
			}
			if !yield(ev) {
				return
			}
		}
	}
}

func TestScenariosOnMiniredis(t *testing.T) {
	mini := miniredis.RunT(t)
	ran, release := &atomic.Int32{}, make(chan struct{})
	c := config(t)
	c.Store, c.Agents = "redis://"+mini.Addr(), []holdfast.Agent{lookAndWait(ran, release)}
	url := started(t, c)
	message := func(run string) string {
		return fmt.Sprintf(`{"threadId":"t",%s"protocolVersion":"1.0","messages":[{"id":"m%d",`+
			`"role":"user","content":"go"}]}`, run, len(run))
	}
	refused := func(scenario int, body string, status int, parts ...string) {
		t.Helper()
		res := posted(t, url+"/runs", body)
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status {
			t.Fatalf("scenario %d: %d %s, %v", scenario, res.StatusCode, text, err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("scenario %d does not say %q: %s", scenario, part, text)
			}
		}
	}
	const thread = "hf:{default/t}:"

	// 1: neither a checkpoint nor messages.
	refused(1, `{"threadId":"t","runId":"r0","messages":[]}`, http.StatusBadRequest, "nothing_to_run",
		"No messages provided and thread has no existing history or checkpoint.")

	// 2: messages and no checkpoint. The client leaves the run's id to the server.
	res := posted(t, url+"/runs", message(""))
	run := res.Header.Get("Holdfast-Run")
	var last event
	for ev := range events(t, res) {
		if ev.Type == "RUN_STARTED" && (run == "" || ev.RunID != run) {
			t.Errorf("the run is %q in its first event, %q in the header", ev.RunID, run)
		}
		if ev.Type == "TOOL_CALL_RESULT" && ev.ToolCallID == "c1" {
			// The other call still runs.
			if pending, err := mini.HKeys(thread + "v:pending"); err != nil || !slices.Equal(pending, []string{"c1"}) {
				t.Errorf("while a call runs the pending writes are %q, %v", pending, err)
			}
			for key, kind := range map[string]string{
				thread + "t": "hash", thread + "l": "stream", thread + "v:pending": "hash", thread + "v:run": "hash",
				"hf:spans:{default/local}": "zset", "hf:leases": "zset",
			} {
				if got := mini.Type(key); got != kind {
					t.Errorf("%s is a %q, want a %s; there is %q", key, got, kind, mini.Keys())
				}
			}
			if intents := mini.HGet(thread+"t", "n"); !strings.Contains(intents, "c1") ||
				!strings.Contains(intents, "c2") {
				t.Errorf("while a call runs the intents are %q", intents)
			}
			close(release)
		}
		last = ev
	}
	if last.Type != "RUN_FINISHED" || mini.Exists(thread+"v:pending") || ran.Load() != 2 {
		t.Fatalf("after %d calls the run ended with %+v; there is %q", ran.Load(), last, mini.Keys())
	}
	if listed := mini.HGet(thread+"t", "x"); !strings.HasPrefix(listed, "3:") {
		t.Errorf("the checkpoints are %q", listed)
	}

	// 4: messages and a checkpoint in the middle of a run.
	if res := posted(t, url+"/threads/t/rewind", `{"checkpointId":"000000000002"}`); res.StatusCode != http.StatusOK {
		t.Fatalf("the rewind answered %d", res.StatusCode)
	}
	refused(4, message(`"runId":"r4",`), http.StatusConflict, "mid_execution", "at iteration 1")

	// 3: a checkpoint and no messages.
	var kinds []string
	for ev := range events(t, posted(t, url+"/runs", `{"threadId":"t","runId":"r3",`+
		`"protocolVersion":"1.0","messages":[]}`)) {
		kinds = append(kinds, ev.Type)
	}
	if len(kinds) < 4 || !slices.Equal(kinds[:3], []string{"RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"}) ||
		kinds[len(kinds)-1] != "RUN_FINISHED" || ran.Load() != 2 {
		t.Errorf("after %d calls the resume streamed %q", ran.Load(), kinds)
	}
}
