package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/threads"
)

// page is what a tool returns: JSON as services write it.
func page(r *rand.Rand) string {
	var rows []map[string]any
	for range 12 {
		rows = append(rows, map[string]any{
			"orderId": fmt.Sprintf("ord_%08d", r.IntN(1e8)), "status": []string{"shipped", "open", "returned"}[r.IntN(3)],
			"amount": float64(r.IntN(1e6)) / 100, "currency": "EUR", "city": []string{"Lisbon", "Oslo", "Porto", "Bergen"}[r.IntN(4)],
		})
	}
	b, err := json.Marshal(rows)
	if err != nil {
		panic(err) // plain values
	}
	return string(b)
}

// worker makes one call in each of n iterations, and streams a sentence with each.
func worker(n int) holdfast.Agent {
	r := rand.New(rand.NewPCG(1, 2))
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for word := range strings.FieldsSeq(fmt.Sprintf("Step %d of the work is to look up the next page of orders and to compare it with the page before", req.Iteration)) {
				if !yield(holdfast.Delta{Text: word + " "}, nil) {
					return
				}
			}
			if req.Iteration < n {
				yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "orders", Arguments: fmt.Sprintf(`{"page":%d}`, req.Iteration)}}, nil)
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	})
	orders := holdfast.NewTool("orders", "lists orders", func(context.Context, struct {
		Page int `json:"page"`
	}) (string, error) {
		return page(r), nil
	}, holdfast.WithEffect(holdfast.EffectPure))
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{orders}}
}

// storedBy runs n iterations on an embedded store and returns what the thread takes
// when its log is archived, by kind, and the JSON of its messages.
func storedBy(t *testing.T, n int) (size map[string]int64, messages int64) {
	t.Helper()
	s, err := server.New(server.Config{
		Agents: []holdfast.Agent{worker(n)}, Store: "bolt:" + filepath.Join(t.TempDir(), "s.db"), MaxIterations: n + 10,
		ArchiveAfter: time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	defer func() {
		web.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	get := func(req *http.Request, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream;q=0.1")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %.500s %v", req.URL, res.StatusCode, body, err)
		}
		return body
	}
	in := `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"go"}]}`
	get(http.NewRequest("POST", web.URL+"/runs", strings.NewReader(in)))
	var info threads.Info
	for deadline := time.Now().Add(30 * time.Second); ; {
		info = threads.Info{} // decoding adds to a map
		if err := json.Unmarshal(get(http.NewRequest("GET", web.URL+"/threads/t", nil)), &info); err != nil {
			t.Fatal(err)
		}
		if info.Size["records"] == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log was not archived: %+v", info)
		}
		time.Sleep(10 * time.Millisecond)
	}
	var list struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(get(http.NewRequest("GET", web.URL+"/threads/t/messages", nil)), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Messages) != 2*n+2 {
		t.Fatalf("%d messages", len(list.Messages))
	}
	// What a page that missed everything is shown is the same as ever.
	replay := get(http.NewRequest("GET", web.URL+"/threads/t/runs/r/events", nil))
	if got := bytes.Count(replay, []byte(`"type":"TOOL_CALL_RESULT"`)); got != n || !bytes.Contains(replay, []byte("Step 0 of the work is to look up")) {
		t.Errorf("the replay has %d results", got)
	}
	for _, m := range list.Messages {
		messages += int64(len(m))
	}
	return info.Size, messages
}

// TestBytesStored: messages and checkpoints of a thousand iterations take at most
// 0.7 of their JSON and 64 bytes an iteration; the log of the finished run keeps no
// text of theirs; and ten times the iterations take ten times the bytes.
func TestBytesStored(t *testing.T) {
	t.Parallel()
	small, _ := storedBy(t, 100)
	large, text := storedBy(t, 1000)
	stored := large["messages"] + large["checkpoint"]
	if limit := text*7/10 + 64*1000; stored > limit {
		t.Errorf("messages and checkpoints take %d bytes for %d bytes of JSON, at most %d: %v", stored, text, limit, large)
	}
	if perIteration := large["log"] / 1000; perIteration > 200 {
		t.Errorf("the archived log takes %d bytes an iteration: %v", perIteration, large)
	}
	total := func(size map[string]int64) (sum float64) {
		for _, n := range size {
			sum += float64(n)
		}
		return sum
	}
	ratio := total(large) / total(small)
	t.Logf("100 iterations: %v; 1000: %v, of %d bytes of messages; ratio %.2f", small, large, text, ratio)
	if ratio > 10.5 {
		t.Errorf("a thousand iterations take %.2f times what a hundred take, at most 10.5", ratio)
	}
}
