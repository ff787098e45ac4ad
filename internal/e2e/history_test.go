package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestTimeTravel goes through the whole life of a conversation that charges a card
// three times: it is looked at, forked, gone on with, taken back, edited, pruned and
// deleted, over HTTP. Afterwards nothing of it is stored any more.
func TestTimeTravel(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		timeTravel(t, newFile(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		store := newRedis(t)
		timeTravel(t, store)
		checkNoKeys(t, store)
	})
}

func timeTravel(t *testing.T, store string) {
	trip := &traveller{killer: newKiller(t, store, "per_iteration", "on")}
	trip.says("t", "r1", userMessage("u1", "charge 3"))
	trip.looksBack()
	trip.forks()
	trip.reuses()
	trip.rewinds()
	trip.edits()
	trip.prunes()
	trip.deletes()
	trip.p.kill()
	s := openStore(t, store)
	defer s.Close()
	for after, more := "", true; more; more = after != "" {
		heads, next, err := s.Walk(t.Context(), after, 100)
		if err != nil || len(heads) > 0 {
			t.Fatalf("the store still has %v, %v", heads, err)
		}
		after = next
	}
}

// checkNoKeys: what is left in Redis is about processes, how far the index is complete, and when a tenant
// and a user were active, not about threads.
func checkNoKeys(t *testing.T, store string) {
	t.Helper()
	options, err := redis.ParseURL(store)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	defer c.Close()
	keys, err := c.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		about := []string{
			"hf:leases",
			"hf:{hf:leases}:formats",
			"hf:{hf:leases}:about",
			"hf:index",
			"hf:days:{default/}",
			"hf:spans:{default/local}",
		}
		if !slices.Contains(about, key) {
			t.Errorf("%s is left: %v", key, c.ZRangeWithScores(context.Background(), key, 0, 9))
		}
	}
}

// traveller is a person who uses the routes of the history.
type traveller struct {
	*killer
	steps []threads.Checkpoint // of the first run, oldest first
}

// ask sends a request and reads the answer into v.
func (k *traveller) ask(want int, v any, method, path, body string, header ...string) {
	k.Helper()
	req, err := http.NewRequestWithContext(k.Context(), method, k.p.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		k.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		k.Fatal(err)
	}
	defer res.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&raw); err != nil || res.StatusCode != want {
		k.Fatalf("%s %s %s: %d, want %d: %s %v", method, path, body, res.StatusCode, want, raw, err)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		k.Fatalf("%s %s: %s: %v", method, path, raw, err)
	}
}

// says posts messages, or none to go on, and waits for the end.
func (k *traveller) says(thread, run string, messages ...map[string]any) {
	k.Helper()
	res, err := post(k.Context(), k.p.url, input(thread, run, messages...))
	if err != nil {
		k.Fatal(err)
	}
	defer res.Body.Close()
	var end record
	if err := readStream(res.Body, func(r record) bool { end = r; return false }); err != nil ||
		end.kind() != "RUN_FINISHED" {
		k.Fatalf("%s: ended with %d %s, %v", thread, res.StatusCode, end.Raw, err)
	}
}

// history is the roles of a thread's messages.
func (k *traveller) history(thread string) string {
	k.Helper()
	return strings.Join(roles(k.messages(thread)), " ")
}

type message struct {
	ID, Role string
	Content  json.RawMessage
}

func (k *traveller) messages(thread string) []message {
	k.Helper()
	var body struct{ Messages []message }
	k.ask(200, &body, "GET", "/threads/"+thread+"/messages", "")
	return body.Messages
}

func roles(messages []message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.Role
	}
	return out
}

func (k *traveller) checkpoints(thread, query string) []threads.Checkpoint {
	k.Helper()
	var body struct{ Checkpoints []threads.Checkpoint }
	k.ask(200, &body, "GET", "/threads/"+thread+"/checkpoints"+query, "")
	return body.Checkpoints
}

// charged counts the charges that were started since the mark.
func (k *traveller) charged(mark int64) int {
	n := 0
	for _, line := range k.journalFrom(mark) {
		if strings.HasPrefix(line, "tool start name=charge_card") {
			n++
		}
	}
	return n
}

const (
	threeCharges = "user assistant tool assistant tool assistant tool assistant"
	oneCharge    = "user assistant tool"
)

// looksBack: every iteration is listed, and can be looked at.
func (k *traveller) looksBack() {
	k.Helper()
	k.steps = k.checkpoints("t", "")
	slices.Reverse(k.steps)
	var got []string
	for _, cp := range k.steps {
		got = append(got, fmt.Sprintf("%s %d %s", cp.Metadata.Source, cp.Metadata.Step, cp.Status))
	}
	want := []string{"input -1 running", "loop 1 running", "loop 2 running", "loop 3 running", "loop 4 idle"}
	if !slices.Equal(got, want) {
		k.Fatalf("the checkpoints are %q, want %q", got, want)
	}
	if page := k.checkpoints("t", "?limit=2&before="+k.steps[3].ID); len(page) != 2 || page[0].ID != k.steps[2].ID {
		k.Errorf("two before %s are %v", k.steps[3].ID, page)
	}
	var detail struct {
		Iteration int
		Messages  []message
	}
	k.ask(200, &detail, "GET", "/threads/t/checkpoints/"+k.steps[1].ID, "")
	if got := strings.Join(roles(detail.Messages), " "); got != oneCharge || detail.Iteration != 1 {
		k.Errorf("after the first charge: %s, iteration %d", got, detail.Iteration)
	}
	var runs struct{ Runs []threads.Run }
	k.ask(200, &runs, "GET", "/threads/t/runs", "")
	if len(runs.Runs) != 1 || runs.Runs[0].ID != "r1" || runs.Runs[0].Outcome != "success" {
		k.Errorf("the runs are %+v", runs.Runs)
	}
}

// checkEffects: going back tells which charges have been made since.
func (k *traveller) checkEffects(got threads.Traveled, amounts ...int) {
	k.Helper()
	var seen []int
	for _, e := range got.Effects {
		var args struct{ Amount int }
		if err := json.Unmarshal(e.Arguments, &args); err != nil || e.Tool != "charge_card" || e.Effect != "once" ||
			e.Message == "" {
			k.Errorf("the effect %+v, %v", e, err)
		}
		seen = append(seen, args.Amount)
	}
	if !slices.Equal(seen, amounts) {
		k.Errorf("charges made since: %v, want %v", seen, amounts)
	}
}

// forks goes on from the first charge in another thread, and charges again there.
func (k *traveller) forks() {
	k.Helper()
	var got threads.Traveled
	body := fmt.Sprintf(`{"checkpointId":%q,"threadId":"f"}`, k.steps[1].ID)
	k.ask(201, &got, "POST", "/threads/t/fork", body)
	if got.Thread.Status != threads.StatusStopped || got.Thread.Parent != "t" ||
		got.Thread.ParentCheckpoint != k.steps[1].ID {
		k.Errorf("the fork is %+v", got.Thread)
	}
	k.checkEffects(got, 2, 3)
	if h := k.history("f"); h != oneCharge {
		k.Errorf("the fork has %s", h)
	}
	k.ask(409, nil, "POST", "/threads/t/fork", body) // there is one already
	mark := k.journalSize()
	k.says("f", "f1")
	if n := k.charged(mark); n != 2 {
		k.Errorf("the fork charged %d times, want twice", n)
	}
	for _, thread := range []string{"t", "f"} {
		if h := k.history(thread); h != threeCharges {
			k.Errorf("%s has %s", thread, h)
		}
	}
}

// reuses does the same with the recorded results: nothing is charged.
func (k *traveller) reuses() {
	k.Helper()
	var got threads.Traveled
	k.ask(201, &got, "POST", "/threads/t/fork",
		fmt.Sprintf(`{"checkpointId":%q,"threadId":"g","reuseResults":true}`, k.steps[1].ID))
	mark := k.journalSize()
	k.says("g", "g1")
	if n := k.charged(mark); n != 0 {
		k.Errorf("the fork that reuses results charged %d times", n)
	}
	was, is := k.messages("t"), k.messages("g")
	if len(was) != len(is) {
		k.Fatalf("the fork has %v", roles(is))
	}
	for i := range was {
		if was[i].Role == "tool" && !bytes.Equal(was[i].Content, is[i].Content) {
			k.Errorf("result %d is %s, want the recorded %s", i, is[i].Content, was[i].Content)
		}
	}
}

// rewinds takes the thread itself back to its first charge, and says something else.
func (k *traveller) rewinds() {
	k.Helper()
	var before threads.Info
	k.ask(200, &before, "GET", "/threads/t", "")
	body := fmt.Sprintf(`{"messageId":%q}`, k.messages("t")[1].ID)
	var refused struct {
		Error struct {
			Code    string
			Details struct{ Expected, Actual string }
		}
	}
	k.ask(409, &refused, "POST", "/threads/t/rewind", body, "If-Match", `"old"`)
	if e := refused.Error; e.Code != codes.CheckpointConflict || e.Details.Expected != "old" ||
		e.Details.Actual != before.ETag {
		k.Errorf("an old ETag: %+v, want both ETags, the actual one is %s", e, before.ETag)
	}
	var got threads.Traveled
	k.ask(200, &got, "POST", "/threads/t/rewind", body, "If-Match", `"`+before.ETag+`"`)
	k.checkEffects(got, 2, 3)
	if h := k.history("t"); h != oneCharge || got.Thread.Status != threads.StatusIdle ||
		got.Thread.ETag == before.ETag {
		k.Errorf("the thread has %s and is %+v", h, got.Thread)
	}
	k.says("t", "r2", userMessage("u2", "calculate 6 * 7"))
	if h := k.history("t"); h != oneCharge+" user assistant tool assistant" {
		k.Errorf("the thread went on with %s", h)
	}
}

// edits gives the thread another shared state, in a checkpoint of its own.
func (k *traveller) edits() {
	k.Helper()
	var made threads.Checkpoint
	k.ask(201, &made, "POST", "/threads/t/checkpoints", `{"label":"edited","state":{"note":"by hand"}}`)
	if newest := k.checkpoints("t", "?limit=1"); newest[0].ID != made.ID || newest[0].Metadata.Source != "update" ||
		newest[0].Metadata.Label != "edited" {
		k.Errorf("the newest checkpoint is %+v, made was %+v", newest[0], made)
	}
	k.says("t", "r3", userMessage("u3", "plan 1 steps"))
	var state struct{ State map[string]any }
	k.ask(200, &state, "GET", "/threads/t/state", "")
	if state.State["note"] != "by hand" || state.State["plan"] == nil {
		k.Errorf("the state is %v: want the note, and what the tool has added", state.State)
	}
}

// prunes forgets the past and keeps what there is.
func (k *traveller) prunes() {
	k.Helper()
	history, listed := k.history("t"), len(k.checkpoints("t", ""))
	for _, dry := range []bool{true, false} {
		var cleaned threads.Cleaned
		k.ask(200, &cleaned, "POST", "/threads/t/prune", fmt.Sprintf(`{"keep":1,"dryRun":%v}`, dry))
		// Five messages are on the branch that the thread went back from: two charges
		// with their results, and the last answer.
		if cleaned.DryRun != dry || cleaned.Checkpoints != listed-1 || cleaned.Messages != 5 {
			k.Errorf("pruned %+v of %d checkpoints", cleaned, listed)
		}
		want := 1
		if dry {
			want = listed
		}
		if left := len(k.checkpoints("t", "")); left != want || k.history("t") != history {
			k.Errorf("after pruning (dry: %v) %d checkpoints are left, and %s", dry, left, k.history("t"))
		}
	}
	k.says("t", "r4", userMessage("u4", "hello"))
}

// deletes removes the thread and its forks.
func (k *traveller) deletes() {
	k.Helper()
	var children struct{ Threads []threads.Info }
	k.ask(200, &children, "GET", "/threads/t/children", "")
	if len(children.Threads) != 2 {
		k.Errorf("the children are %+v", children.Threads)
	}
	var cleaned threads.Cleaned
	k.ask(200, &cleaned, "POST", "/maintenance/delete-inactive", `{"threshold":"1h"}`)
	if cleaned.Threads != 0 {
		k.Errorf("what is new was deleted: %+v", cleaned)
	}
	var answer struct{ Deleted int }
	k.ask(200, &answer, "DELETE", "/threads/t?children=delete", "")
	if answer.Deleted != 3 {
		k.Errorf("%d threads were deleted, want 3", answer.Deleted)
	}
	for _, thread := range []string{"t", "f", "g"} {
		k.ask(404, nil, "GET", "/threads/"+thread, "")
	}
}
