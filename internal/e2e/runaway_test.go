package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// maxRunaway is what a model that never stops may cost the server in memory, in bytes.
const maxRunaway = 50 << 20

// TestRunawayModel: a provider that sends for as long as it is listened to is stopped, and
// costs the server little, in whichever way it goes on.
func TestRunawayModel(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the peak of a process's memory is in /proc, which only Linux has")
	}
	piece := strings.Repeat("lorem ipsum ", 100)
	event := func(delta string) string { return `data: {"choices":[{"delta":` + delta + `}]}` + "\n\n" }
	for name, chunk := range map[string]func(n int) string{
		"text":    func(int) string { return event(`{"content":"` + piece + `"}`) },
		"letters": func(int) string { return event(`{"content":"x"}`) },
		"escapes": func(int) string {
			return event(`{"content":"` + strings.Repeat(`\u0001`, 1000) +
				`"}`)
		},
		"reasoning":                func(int) string { return event(`{"reasoning_content":"` + piece + `"}`) },
		"reasoning and text":       func(int) string { return event(`{"reasoning_content":"x","content":"y"}`) },
		"arguments":                func(int) string { return toolCall(0, "lookup", piece) },
		"calls":                    func(n int) string { return toolCall(n, "lookup", "{}") },
		"calls with arguments":     func(n int) string { return toolCall(n/100, "lookup", piece) },
		"arguments without a name": func(int) string { return toolCall(0, "", piece) },
		"calls without a name":     func(n int) string { return toolCall(n, "", "") },
		"one line":                 func(int) string { return "data: " + piece },
		"one event":                func(int) string { return "data: " + piece + "\n" },
		"one answer": func(n int) string {
			if n == 0 {
				return `{"choices":[{"message":{"content":"`
			}
			return piece
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := runaway(t, chunk)
			before := p.memory("VmRSS")
			res, err := post(t.Context(), p.url, input("t", "r", userMessage("m", "go")))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			stream, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(stream, []byte(`"code":"model_failed"`)) {
				t.Errorf("the run did not end with model_failed but with %s", stream[max(0, len(stream)-400):])
			}
			cost := p.memory("VmHWM") - before
			t.Logf("%s: %.1f MB", name, float64(cost)/(1<<20))
			if cost > maxRunaway {
				t.Errorf("the model cost %d bytes, %d at most", cost, maxRunaway)
			}
		})
	}
}

// toolCall is an event with a piece of a call; the first of a call has a name.
func toolCall(index int, name, arguments string) string {
	return fmt.Sprintf(
		`data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"c%[1]d",`+
			`"function":{"name":%q,"arguments":%q}}]}}]}`+
			"\n\n",
		index,
		name,
		arguments,
	)
}

// runaway returns a server whose model sends chunks until nobody listens any more.
func runaway(t *testing.T, chunk func(n int) string) *process {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for n := 0; r.Context().Err() == nil; n++ {
			if _, err := io.WriteString(w, chunk(n)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(provider.Close)
	addr := redistest.FreeAddr(t)
	cmd := exec.Command(binary, "--addr", addr, "--store", newFile(t), "--model", "openai/endless")
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+provider.URL, "GOMAXPROCS=2")
	p := run(t, cmd)
	p.url = "http://" + addr
	return p.ready()
}

// memory returns a line of the process's status in /proc, in bytes.
func (p *process) memory(what string) int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == what+":" {
			kib, err := strconv.Atoi(f[1])
			if err != nil {
				p.t.Fatal(err)
			}
			return kib << 10
		}
	}
	p.t.Fatalf("the process has no %s:\n%s", what, status)
	return 0
}
