package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/redis/go-redis/v9"
)

// TestCutOffOwnersAreHarmless: all connections of a living owner to Redis are broken at once,
// again and again. Whether it is taken for dead or not, and has lost its run then: the log has
// every record once, the run ends as it should, and no call has two results.
func TestCutOffOwnersAreHarmless(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec")
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer admin.Close()
	f := &fleet{T: t}
	// Each server has a user of its own, so that its connections can be told from the others'.
	users := []string{"first", "second"}
	for i, user := range users {
		if err := admin.Do(t.Context(), "ACL", "SETUSER", user, "on", ">secret", "allkeys", "allchannels",
			"allcommands").
			Err(); err != nil {
			t.Fatal(err)
		}
		f.journals = append(f.journals, filepath.Join(t.TempDir(), "journal"))
		f.servers = append(f.servers, start(t, redistest.FreeAddr(t),
			fmt.Sprintf("redis://%s:secret@%s", user, server.Addr), "--demo-delay=5ms",
			"--demo-journal="+f.journals[i]))
	}
	const thread, cuts = "cutoff", 30
	f.begin(thread, 0, "plan 10 steps")
	next, owner, cut, takeovers := uint64(1), 0, 0, 0
	var last record
	for s := range f.watched(t.Context(), f.servers[1], thread, "") {
		if s.Number != next {
			t.Fatalf("record %d follows %d: %s", s.Number, next-1, s.Raw)
		}
		next, last = next+1, s.record
		if s.kind() == "CUSTOM" && s.Data["name"] == "holdfast.takeover" {
			owner, takeovers = 1-owner, takeovers+1
		}
		if next%10 == 0 && cut < cuts {
			cut++
			if err := admin.ClientKillByFilter(t.Context(), "USER", users[owner]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last.kind() != "RUN_FINISHED" {
		t.Fatalf("the run ended with %s\n%s\n%s", last.Raw, f.servers[0].out, f.servers[1].out)
	}
	var body struct {
		Messages []struct{ Role, ToolCallID string }
	}
	if code := getJSON(t, f.servers[0].url+"/threads/"+thread+"/messages", &body); code != http.StatusOK {
		t.Fatal(code)
	}
	results := map[string]int{}
	for _, m := range body.Messages {
		if m.Role == "tool" {
			results[m.ToolCallID]++
		}
	}
	for call, n := range results {
		if n > 1 {
			t.Errorf("the call %s has %d results", call, n)
		}
	}
	if len(results) != 25 { // lookup and update_plan in each step, calculate in every other
		t.Errorf("%d calls have a result", len(results))
	}
	t.Logf("%d times without connections, %d takeovers, %d records", cut, takeovers, next-1)
}
