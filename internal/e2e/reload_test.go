package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// echo is a provider whose model first calls calculate, and then says what it was asked with:
// its own name, its instructions and its tools. Where the person says hold, it stops in the
// middle of its first answer until it is let go.
type echo struct {
	*testing.T
	held chan struct{} // gets a value each time that it stops
	mu   sync.Mutex
	free chan struct{} // closed to let go
}

// hold has answers stop from now on. The caller calls release.
func (e *echo) hold() (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.free = make(chan struct{})
	return sync.OnceFunc(func() { close(e.free) })
}

// ServeHTTP implements [http.Handler].
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		e.Errorf("the model is asked %s: %v", body, err)
		return
	}
	said, instructions := asked.Messages[len(asked.Messages)-1], ""
	if asked.Messages[0].Role == "system" {
		instructions = asked.Messages[0].Content
	}
	if said.Role != "tool" {
		fmt.Fprint(w, chatDelta(`{"content":"I count."}`))
		if said.Content == "hold" {
			_ = http.NewResponseController(w).Flush() // a client that is gone is no matter
			e.mu.Lock()
			free := e.free
			e.mu.Unlock()
			e.held <- struct{}{}
			select {
			case <-free:
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, chatDelta(`{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"calculate",`+
			`"arguments":"{\"expression\":\"1+1\"}"}}]}`)+
			"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"+chatEnd)
		return
	}
	var tools []string
	for _, t := range asked.Tools {
		tools = append(tools, t.Function.Name)
	}
	fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":%q}`, asked.Model+": "+instructions+" "+strings.Join(tools, " ")))+
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"+chatEnd)
}

// TestReload: a run in the middle of an answer ends with the agent that it began with, after a
// SIGHUP has brought another model, other instructions and one tool more, which the next run
// has. A file with mistakes changes nothing. A server that is killed starts with the file as
// it is, and goes on with its run that way.
func TestReload(t *testing.T) {
	t.Parallel()
	model := &echo{T: t, held: make(chan struct{})}
	provider := httptest.NewServer(model)
	t.Cleanup(provider.Close)
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edition := func(n int, tools string) {
		write(fmt.Sprintf("agents:\n  - {name: a, model: openai/m%d, baseURL: %q, instructions: "+
			"Edition %d., tools: [%s]}\n", n, provider.URL, n, tools))
	}
	edition(1, "calculate")
	store := newFile(t)
	p := start(t, redistest.FreeAddr(t), store, "--config="+file)
	// begin starts a run that stops in the middle, and returns its end.
	begin := func(thread string) (release func(), end func() string) {
		t.Helper()
		release = model.hold()
		res, err := post(t.Context(), p.url, input(thread, "r-"+thread, userMessage("u-"+thread, "hold")))
		if err != nil {
			t.Fatal(err)
		}
		<-model.held
		return release, func() string {
			t.Helper()
			defer res.Body.Close()
			return lastText(t, res.Body)
		}
	}
	says := func(thread, want string) {
		t.Helper()
		res, err := post(t.Context(), p.url, input(thread, "r-"+thread, userMessage("u-"+thread, "go")))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if got := lastText(t, res.Body); got != want {
			t.Errorf("thread %s: the agent says %q, want %q", thread, got, want)
		}
	}
	const first, third = "m1: Edition 1. calculate", "m3: Edition 3. calculate"
	const second = "m2: Edition 2. calculate current_time"

	release, end := begin("t1")
	edition(2, "calculate, current_time")
	p.signal(syscall.SIGHUP)
	p.awaitLines("action=reload_agents result=ok added=[] removed=[] changed=[a]", 1)
	says("t2", second)
	release()
	if got := end(); got != first {
		t.Errorf("the run that was under way says %q, want %q", got, first)
	}
	write("agents:\n  - {name: a, model: openai/m9, colour: red}\n")
	p.signal(syscall.SIGHUP)
	p.awaitLines("action=reload_agents result=failed", 1)
	p.awaitLines("holdfast.yaml:2:33: ", 1)
	says("t3", second)

	release, _ = begin("t4")
	edition(3, "calculate")
	p.kill()
	p = start(t, redistest.FreeAddr(t), store, "--config="+file)
	<-model.held // the run goes on
	says("t5", third)
	release()
	res, err := http.Get(p.url + "/threads/t4/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := lastText(t, res.Body); got != third {
		t.Errorf("the run that was cut off says %q, want %q", got, third)
	}
}

// lastText reads a stream to its end, and returns the last message's text.
func lastText(t *testing.T, body io.Reader) string {
	t.Helper()
	texts, last := map[any]string{}, any(nil)
	err := readStream(body, func(r record) bool {
		if r.kind() == "TEXT_MESSAGE_CONTENT" {
			last = r.Data["messageId"]
			texts[last] += r.Data["delta"].(string)
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts[last]
}
