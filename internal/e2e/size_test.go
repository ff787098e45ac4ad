package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/threads"
)

// storedBy runs n iterations on an embedded store and returns what the thread takes
// when its log is archived, by kind, and the JSON of its messages.
func storedBy(t *testing.T, n int) (size map[string]int64, messages int64) {
	t.Helper()
	c := newCrew(t, newFile(t), "--archive-after=1ms").begin()
	k := c.talk("orders", "t")
	k.wantEnd(k.says(strconv.Itoa(n)), "success")
	var info threads.Info
	wait.For(t, func() error {
		info = threads.Info{} // decoding adds to a map
		if getJSON(t, c.p.url+"/threads/t", &info); info.Size["records"] > 0 {
			return fmt.Errorf("the log was not archived: %+v", info)
		}
		return nil
	})
	var list struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if code := getJSON(t, c.p.url+"/threads/t/messages", &list); code != http.StatusOK || len(list.Messages) != 2*n+2 {
		t.Fatalf("%d: %d messages", code, len(list.Messages))
	}
	// A page that missed everything is shown the same as ever.
	res, err := http.Get(c.p.url + "/threads/t/runs/r1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	replay, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(replay, []byte(`"type":"TOOL_CALL_RESULT"`)); got != n ||
		!bytes.Contains(replay, []byte("Step 0 of the work is to look up")) {
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
		t.Errorf("messages and checkpoints take %d bytes for %d bytes of JSON, at most %d: %v", stored, text, limit,
			large)
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
