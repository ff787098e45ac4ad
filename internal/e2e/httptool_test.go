package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/redistest"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// What becomes of a call to an HTTP service by the effect of its tool, if the server or the
// service is killed when the service has received the request, or when it has done the work
// and not answered. The table in docs/tools.md has these numbers.
var deathsOfHTTP = []struct {
	dies, when string
	// want are, for each effect, how often the service got a request, how often it did the
	// work, and what the model reads.
	want map[string]fateOfHTTP
}{
	{"server", "received", map[string]fateOfHTTP{"pure": {2, 1, "ok"}, "idempotent": {2, 1, "ok"}, "once": {1, 0, thread.TextInDoubt}, "query": {2, 1, "ok"}}},
	{"server", "done", map[string]fateOfHTTP{"pure": {2, 2, "ok"}, "idempotent": {2, 1, "ok"}, "once": {1, 1, thread.TextInDoubt}, "query": {1, 1, "ok, looked up"}}},
	{"service", "received", map[string]fateOfHTTP{"pure": {2, 1, "ok"}, "idempotent": {2, 1, "ok"}, "once": {1, 0, thread.TextUnknown}, "query": {1, 0, thread.TextUnknown}}},
	{"service", "done", map[string]fateOfHTTP{"pure": {2, 2, "ok"}, "idempotent": {2, 1, "ok"}, "once": {1, 1, thread.TextUnknown}, "query": {1, 1, thread.TextUnknown}}},
}

type fateOfHTTP struct {
	got, did int
	text     string
}

// TestHTTPToolsAndDeath kills with kill -9 in the middle of four calls, one of each effect,
// and counts by the service's own file what it was asked and what it did.
func TestHTTPToolsAndDeath(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		for _, d := range deathsOfHTTP {
			t.Run(d.dies+" "+d.when, func(t *testing.T) {
				t.Parallel()
				h := newHTTPCrew(t, newStore(t), d.when)
				if end := h.callAll(d.dies); end.kind() != "RUN_FINISHED" {
					t.Fatalf("ended with %s", end.Raw)
				}
				texts := h.results()
				for effect, want := range d.want {
					got := fateOfHTTP{len(h.lines("service got effect=" + effect + " ")), len(h.lines("service did effect=" + effect + " ")), texts[effect]}
					if got != want {
						t.Errorf("%s: %+v, want %+v", effect, got, want)
					}
				}
				h.checkKeys()
			})
		}
	})
}

// httpCrew is a crew with the service that it calls.
type httpCrew struct {
	*talk
	addr    string
	service *process // nil while it is dead
	died    bool
}

// newHTTPCrew starts all processes. The service stops for ever at the first request of each
// effect, at the moment.
func newHTTPCrew(t *testing.T, store, moment string) *httpCrew {
	t.Helper()
	h := &httpCrew{addr: redistest.FreeAddr(t)}
	c := newCrew(t, store, "--service=http://"+h.addr)
	for _, effect := range []string{"pure", "idempotent", "once", "query"} {
		if err := os.WriteFile(filepath.Join(c.holds, "service."+effect+"."+moment), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.talk = c.talk("caller", "t")
	h.startService()
	c.begin()
	return h
}

func (h *httpCrew) startService() {
	h.Helper()
	h.service = launch(h.T, workerBinary, h.addr, "none", "--serve", "--journal="+h.journal, "--holds="+h.holds, "--name=service").ready()
}

// callAll has the agent call all tools at once, and kills when the service has all calls.
// A service that died comes back when the calls that nobody may repeat have their results.
func (h *httpCrew) callAll(dies string) record {
	h.Helper()
	h.watch = func() {
		switch {
		case !h.died && len(h.lines("service held")) == 4:
			h.died = true
			if dies == "server" {
				h.kill(h.p.name)
				return
			}
			h.service.kill()
			h.service = nil
		case h.service == nil && len(h.results()) >= 2:
			h.startService()
		}
	}
	return h.says("pure 1 + idempotent 1 + once 1 + query 1")
}

// results are the results so far, by the name of the tool.
func (h *httpCrew) results() map[string]string {
	texts := map[string]string{}
	for _, r := range h.seen {
		if r.kind() != "TOOL_CALL_RESULT" {
			continue
		}
		id, _ := r.Data["toolCallId"].(string)
		name, _, _ := strings.Cut(id, "-")
		texts[name], _ = r.Data["content"].(string)
	}
	return texts
}

// checkKeys: all requests of a call carry its key, whichever process sent them; those of a
// pure call need none.
func (h *httpCrew) checkKeys() {
	h.Helper()
	keys := map[string]string{}
	for _, line := range h.lines("service got ") {
		effect, key := fields(line)["effect"], fields(line)["key"]
		if known, again := keys[effect]; again && known != key || (key == "") != (effect == "pure") {
			h.Errorf("%s: the key was %q and is %q", effect, known, key)
		}
		keys[effect] = key
	}
}

// TestDeathsOnThePage: docs/tools.md has the same numbers.
func TestDeathsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, effect := range []string{"pure", "idempotent", "once", "query"} {
		row := "| `" + effect + "` |"
		for _, d := range deathsOfHTTP {
			want := d.want[effect]
			text := want.text
			if text == thread.TextInDoubt || text == thread.TextUnknown {
				text = "in doubt"
			}
			row += fmt.Sprintf(" %d sent, %d done: %s |", want.got, want.did, text)
		}
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/tools.md does not have the row\n%s", row)
		}
	}
}
