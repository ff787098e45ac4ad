package e2e

import (
	"strings"
	"testing"
)

// TestOneOfThreeRunsAgain is the paper's example: of three parallel calls two are
// finished when the server is killed. After the restart exactly one runs again.
func TestOneOfThreeRunsAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		k := newKiller(t, newStore(t), "per_iteration", "on")
		w := &watcher{killer: k, thread: "three", run: "r1"}
		res, err := post(t.Context(), k.p.url,
			input(w.thread, w.run, userMessage("u1", `use update_plan {"title": "One", "steps": []} and charge_card `+
				`{"amount": 1, "currency": "EUR"} and wait {"seconds": 3}`)))
		if err != nil {
			t.Fatal(err)
		}
		results := 0
		// The error is the cut connection.
		_ = readStream(res.Body, func(r record) bool {
			w.take(r)
			if r.kind() == "TOOL_CALL_RESULT" {
				results++
			}
			return results == 2
		})
		k.p.kill()
		res.Body.Close()
		mark := k.journalSize()
		k.p = start(t, k.addr, k.store, k.args...)
		if end := w.follow(); end.kind() != "RUN_FINISHED" {
			t.Fatalf("ended with %s", end.Raw)
		}
		var again []string
		for _, line := range k.journalFrom(mark) {
			if strings.HasPrefix(line, "tool start") {
				again = append(again, fields(line)["name"])
			}
		}
		if results != 2 || len(again) != 1 || again[0] != "wait" {
			t.Errorf("after two results the server was killed; then %q ran again, want only wait", again)
		}
		w.checkLegal()
	})
}
