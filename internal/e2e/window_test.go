package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// Long conversations: what the model is shown of them, across the deaths of servers.

// longHistory is how many messages a thread has at first, and narrowBytes what the worker's
// model takes.
const (
	longHistory = 2000
	narrowBytes = 24_000
)

// TestALongThreadGoesOn: a thread of 2,000 messages, of which the model takes a few dozen,
// goes on for many turns, some with results that alone are more than the model takes. The
// agent narrow has no middleware of its own, teller summarises. A request that the model has
// refused is never sent again, also not by the next server. make long has 200 turns.
func TestALongThreadGoesOn(t *testing.T) {
	t.Parallel()
	turns := 20
	if n := os.Getenv("TURNS"); n != "" {
		var err error
		if turns, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		for _, agent := range []string{"narrow", "teller"} {
			t.Run(agent, func(t *testing.T) {
				t.Parallel()
				l := &longTalk{crew: newCrew(t, newStore(t)).begin(), agent: agent}
				l.imported()
				for turn := range turns {
					if turn%turns == turns/2 {
						l.kill(l.p.name)
					}
					text := "go on"
					if turn%10 == 3 {
						text = "fetch"
					}
					l.says(text)
				}
				l.check(turns)
			})
		}
	})
}

// longTalk talks to an agent on the thread "long".
type longTalk struct {
	*crew
	agent string
	turns int
}

// imported begins the thread with a history that a client brings.
func (l *longTalk) imported() {
	l.Helper()
	var messages []map[string]any
	for i := range longHistory {
		role := map[bool]string{true: "user", false: "assistant"}[i%2 == 0]
		messages = append(messages, map[string]any{
			"id":      fmt.Sprint("old", i),
			"role":    role,
			"content": fmt.Sprintf("message %d %s", i, strings.Repeat("word ", 20)),
		})
	}
	l.posts(append(messages, userMessage("first", "go on")))
}

func (l *longTalk) says(text string) {
	l.Helper()
	l.posts([]map[string]any{userMessage(fmt.Sprint("turn", l.turns), text)})
}

// posts posts messages until a run has answered them.
func (l *longTalk) posts(messages []map[string]any) {
	l.Helper()
	l.turns++
	body := input("long", fmt.Sprint("run", l.turns), messages...)
	said := ""
	for begun := time.Now(); time.Since(begun) < patience; {
		res, err := postTo(l.Context(), l.p.url, l.agent, body)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(res.Body)
		res.Body.Close()
		said = string(data[max(len(data)-1000, 0):])
		if strings.Contains(said, `"type":"RUN_FINISHED"`) {
			return
		}
		if err == nil && res.StatusCode == http.StatusOK && strings.Contains(said, `"type":"RUN_ERROR"`) {
			break
		}
	}
	l.Fatalf("turn %d has no answer: %s\nworker: %s", l.turns, said, l.p.out)
}

// check looks at what the model was sent in so many turns.
func (l *longTalk) check(turns int) {
	l.Helper()
	count := map[string]int{}
	answeredLast, cuts, most := 0, 0, 0
	for _, line := range l.lines("asked ") {
		f := fields(line)
		count[f["what"]]++
		bytes, _ := strconv.Atoi(f["bytes"])
		switch {
		case f["what"] == "refused":
			continue
		case bytes > narrowBytes:
			l.Errorf("the model got %d bytes", bytes)
		case f["what"] == "answered" && f["cut"] == `""` && bytes < answeredLast:
			l.Errorf("less is shown, %d bytes after %d, and nobody says so: %s", bytes, answeredLast, line)
		case f["what"] == "answered" && f["cut"] != `""`:
			cuts++
		}
		if f["what"] == "answered" {
			answeredLast, most = bytes, max(most, bytes)
		}
	}
	// A call is made twice if its server dies. The first call is halved until it fits, and
	// later the estimate may be wrong once.
	if answered := count["answered"]; answered < turns || answered > turns+turns/10+10 {
		l.Errorf("the model has answered %d times", answered)
	}
	if count["refused"] > 12 || (count["summarised"] > 0) != (l.agent == "teller") || cuts < 2 || cuts > 2+turns/5 {
		l.Errorf("%d calls were refused, %d summaries were made, there were %d cuts", count["refused"],
			count["summarised"], cuts)
	}
	var body struct {
		Messages []struct{ Role, ActivityType string }
	}
	if code := getJSON(l.T, l.p.url+"/threads/long/messages", &body); code != http.StatusOK {
		l.Fatalf("messages: %d", code)
	}
	recorded, others := 0, 0
	for _, m := range body.Messages {
		if m.Role == "activity" {
			recorded++
		} else {
			others++
		}
	}
	// Every turn has a question and an answer, and each fetch a call and a result.
	if want := longHistory + 2*(turns+1) + 2*turns/10; others != want || recorded < cuts/2 {
		l.Errorf("the history has %d messages and %d activities, want %d", others, recorded, want)
	}
	l.Logf("%d calls were answered, %d refused, %d for summaries, %d cuts, %d bytes at most", count["answered"],
		count["refused"], count["summarised"], cuts, most)
}

// TestCrashPointsOfASummary kills the server around the commit of a summary. It is in the
// history once, and the model is not asked for it again once it was durable.
func TestCrashPointsOfASummary(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	text := "agents:\n  - name: demo\n    model: demo\n    middleware:\n      - historyWindow: {maxMessages: 4, " +
		"then: summarise, summaryEvery: 1}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		crashing := buildCrashing(t)
		for point, asked := range map[string]int{"before activity 1": 2, "after activity 1": 1, "after delta 1": 1,
			"before answer 1": 1} {
			t.Run(strings.ReplaceAll(point, " ", "_"), func(t *testing.T) {
				t.Parallel()
				k := newCrashKiller(t, newStore(t), "on")
				k.p = start(t, k.addr, k.store, k.args...)
				for i := range 3 {
					k.says(i)
				}
				k.p.kill()
				plain := k.args
				k.args = append(plain[:len(plain):len(plain)], "--config="+file)
				k.p = k.startCrashing(crashing, "HOLDFAST_CRASH="+point)
				k.says(3)
				if !k.p.died() {
					t.Fatalf("the server did not die %s: %s", point, k.p.out)
				}
				mark := k.journalSize()
				k.p = start(t, k.addr, k.store, k.args...)
				k.says(3)
				starts := 0
				for _, line := range k.journalFrom(mark) {
					if strings.HasPrefix(line, "model start thread=t run=r3 ") {
						starts++
					}
				}
				if starts != asked {
					t.Errorf("the model was asked %d times after the restart, want %d", starts, asked)
				}
				k.wantOneSummary()
			})
		}
	})
}

// says has a turn of the thread "t", and reads until it ends or the server dies.
func (k *killer) says(turn int) {
	k.Helper()
	res, err := post(k.Context(), k.p.url,
		input("t", fmt.Sprint("r", turn), userMessage(fmt.Sprint("u", turn), "hello")))
	if err != nil {
		return // it died before it answered
	}
	defer res.Body.Close()
	// The error is the cut connection.
	_ = readStream(res.Body, func(record) bool { return false })
}

// wantOneSummary checks the history: four turns, and one summary in the last.
func (k *killer) wantOneSummary() {
	k.Helper()
	var body struct {
		Messages []struct {
			Role, ActivityType string
			Content            json.RawMessage
		}
	}
	if code := getJSON(k.T, k.p.url+"/threads/t/messages", &body); code != http.StatusOK {
		k.Fatalf("messages: %d", code)
	}
	var roles []string
	for _, m := range body.Messages {
		roles = append(roles, m.Role+m.ActivityType)
	}
	want := "user assistant user assistant user assistant user activityholdfast.summary assistant"
	if got := strings.Join(roles, " "); got != want {
		k.Errorf("the history is %s", got)
	}
}

// TestOfficialClientAndActivities: the official client shows what a window records, in both
// dialects, goes on with it, and sees the same when it comes back.
func TestOfficialClientAndActivities(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	text := "agents:\n  - name: demo\n    model: demo\n    middleware:\n      - historyWindow: {maxMessages: 6, " +
		"then: summarise, summaryEvery: 1}\n" +
		"  - name: cut\n    model: demo\n    middleware:\n      - historyWindow: {maxMessages: 6}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	eachClient(t, func(t *testing.T, version string) {
		p := start(t, redistest.FreeAddr(t), newFile(t), "--demo-delay=1ms", "--config="+file)
		out, err := oracle(t, "activities.mjs", version, p.url).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\nserver:\n%s", err, out, p.out)
		}
		t.Logf("%s", out)
	})
}
