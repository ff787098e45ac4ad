package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// keptThreads are one thread of each status.
var keptThreads = []string{"idle", "stopped", "interrupted", "running"}

// keepers are the people who talk to the agent keeper, by thread.
type keepers struct {
	*crew
	by map[string]*talk
}

func newKeepers(t *testing.T, store string) *keepers {
	k := &keepers{crew: newCrew(t, store), by: map[string]*talk{}}
	for _, thread := range keptThreads {
		k.by[thread] = k.talk("keeper", thread)
	}
	return k
}

// deploy replaces the worker. On Redis the new one may be there before the old one
// dies.
func (k *keepers) deploy(args ...string) {
	k.Helper()
	if old := k.p; old != nil && k.shared() {
		k.p = k.start(args...)
		old.kill()
		return
	}
	if k.p != nil {
		k.p.kill()
	}
	k.p = k.start(args...)
}

// fill brings each thread to its status: the agent may use three iterations, and one
// run is in its second when the worker stops for ever.
func (k *keepers) fill() {
	k.Helper()
	k.by["idle"].wantEnd(k.by["idle"].says("work 0"), "success")
	k.by["stopped"].wantEnd(k.by["stopped"].says("work 0, work 1, work 2, work 3"), codes.MaxIterations)
	asks := k.by["interrupted"]
	end := asks.says("work 0, ask 1")
	asks.wantEnd(end, "interrupt")
	asks.answers = map[string]string{}
	r := k.by["running"]
	k.hold("running", "model", 1)
	held := len(k.lines("held "))
	r.runs++
	res, err := postTo(k.Context(), k.p.url, "keeper",
		input("running", fmt.Sprintf("r%d", r.runs), userMessage(fmt.Sprintf("u%d", r.runs), "work 0, work 1")))
	if err != nil || res.StatusCode != http.StatusOK {
		k.Fatalf("running: %v, %v", res, err)
	}
	res.Body.Close()
	k.awaitLines("held ", held+1)
	// The model is asked before the checkpoint is stored that has the states.
	wait.For(k.T, func() error {
		var info threads.Info
		if getJSON(k.T, k.p.url+"/threads/running", &info); info.Iteration != 1 {
			return fmt.Errorf("the running thread is %+v", info)
		}
		return nil
	})
}

// question is what the interrupted thread asks.
func (k *keepers) question() []any {
	k.Helper()
	var info threads.Info
	getJSON(k.T, k.p.url+"/threads/interrupted", &info)
	if len(info.Interrupts) != 1 {
		k.Fatalf("the interrupted thread is %+v", info)
	}
	return []any{
		map[string]any{"interruptId": info.Interrupts[0].ID, "status": "resolved", "payload": map[string]any{}},
	}
}

// attach reads the running thread's run to its end.
func (k *keepers) attach() record {
	k.Helper()
	r := k.by["running"]
	w := &watcher{killer: &killer{T: k.T, p: k.p.process}, thread: "running", run: fmt.Sprintf("r%d", r.runs)}
	end := w.follow()
	for _, rec := range w.seen {
		r.take(rec)
	}
	return end
}

// goOn has each thread go on as its status needs. Whether the run that was cut off is
// taken over, or was stopped, is told.
func (k *keepers) goOn(takenOver bool) {
	k.Helper()
	k.by["idle"].wantEnd(k.by["idle"].says("work 0"), "success")
	k.by["stopped"].wantEnd(k.by["stopped"].resumes(), "success")
	k.by["interrupted"].wantEnd(k.by["interrupted"].goOn("resume", k.question()), "success")
	if takenOver {
		k.by["running"].wantEnd(k.attach(), "success")
	} else {
		k.by["running"].wantEnd(k.by["running"].resumes(), "success")
	}
}

// wantRefused checks that no thread can go on, for the reason, and that the run that
// was cut off has ended with it.
func (k *keepers) wantRefused(code string) {
	k.Helper()
	for thread, body := range map[string]string{
		"idle": `"messages":[{"id":"new","role":"user","content":"work 0"}]`, "stopped": `"messages":[]`,
		"interrupted": `"messages":[],"resume":` + mustText(k.T, k.question()),
	} {
		res, err := postTo(k.Context(), k.p.url, "keeper",
			[]byte(`{"threadId":"`+thread+`","runId":"refused","protocolVersion":"1.0",`+body+`}`))
		if err != nil {
			k.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusConflict || !strings.Contains(string(text), `"code":"`+code+`"`) {
			k.Errorf("%s: got %d %s, %v; want 409 %s", thread, res.StatusCode, text, err, code)
		}
		var all any
		if got := getJSON(k.T, k.p.url+"/threads/"+thread+"/messages", &all); got != http.StatusOK {
			k.Errorf("%s cannot be read: %d", thread, got)
		}
	}
	k.by["running"].wantEnd(k.attach(), code)
}

// states are the states of a thread's newest checkpoint.
func (k *keepers) states(thread string) map[string]string {
	k.Helper()
	var list struct{ Checkpoints []threads.Checkpoint }
	getJSON(k.T, k.p.url+"/threads/"+thread+"/checkpoints?limit=1", &list)
	if len(list.Checkpoints) != 1 {
		k.Fatalf("%s has no checkpoint", thread)
	}
	var detail struct {
		MiddlewareState struct{ States map[string]json.RawMessage }
	}
	getJSON(k.T, k.p.url+"/threads/"+thread+"/checkpoints/"+list.Checkpoints[0].ID, &detail)
	out := map[string]string{}
	for name, raw := range detail.MiddlewareState.States {
		out[name] = string(raw)
	}
	return out
}

// wantStates checks the states of all threads: those of kept, gone and fresh, in the
// order of keptThreads.
func (k *keepers) wantStates(when string, kept, gone, fresh [4]string) {
	k.Helper()
	for i, thread := range keptThreads {
		want := map[string]string{}
		for name, s := range map[string]string{"acme.kept": kept[i], "acme.gone": gone[i], "acme.fresh": fresh[i]} {
			if s != "" {
				want[name] = s
			}
		}
		if got := k.states(thread); !reflect.DeepEqual(got, want) {
			k.Errorf("%s: %s has %q, want %q", when, thread, got, want)
		}
	}
}

// counts writes numbers as a state with the format has them.
func counts(format string, n ...int) (out [4]string) {
	for i := range n {
		out[i] = fmt.Sprintf(format, n[i])
	}
	return out
}

const (
	formKept  = `{"iterations":%d}`
	formCount = `{"count":%d}`
	formUnit  = `{"count":%d,"unit":"iteration"}`
)

// wantSaid checks how often the worker's log says of each thread that its states have
// changed, how often the stream does, and the metric for all.
func (k *keepers) wantSaid(when string, times int) {
	k.Helper()
	lines := strings.Split(k.p.out.String(), "\n")
	for _, thread := range keptThreads {
		for _, parts := range [][]string{
			{`level=WARN msg="the checkpoint has the state of middleware that is not here any more; it is kept, and ` +
				`nobody reads it (expected after a middleware was removed)"`,
				"count=1 states=gone"},
			{`level=INFO msg="there is middleware that the checkpoint does not know; its state begins ` +
				`with the initial value"`,
				"count=1 states=fresh"},
			{`level=INFO msg="a state has another version than in the checkpoint"`, "state=kept from=1 to=3"},
		} {
			n := 0
			for _, line := range lines {
				if strings.Contains(line, parts[0]+" thread="+thread+" ") && strings.HasSuffix(line, parts[1]) {
					n++
				}
			}
			if n != times {
				k.Errorf("%s: of %s the log says %d times, want %d: %s\n%s", when, thread, n, times, parts, k.p.out)
			}
		}
		for _, r := range k.by[thread].customs("holdfast.schema_changed") {
			const want = `"value":{"isUpgrade":false,"oldSignature":"acme.gone,acme.kept","newSignature":"acme.fresh,` +
				`acme.kept","removed":["acme.gone"],"added":["acme.fresh"],` +
				`"changed":[{"name":"acme.kept","from":1,"to":3}]`
			if !strings.Contains(r.Raw, want) {
				k.Errorf("%s: the stream of %s says %s", when, thread, r.Raw)
			}
		}
		if got := len(k.by[thread].customs("holdfast.schema_changed")); got != times {
			k.Errorf("%s: the stream of %s says %d times, want %d", when, thread, got, times)
		}
	}
	metrics := k.metrics()
	for _, change := range []string{"removed", "added", "version"} {
		want := fmt.Sprintf("holdfast_schema_changes_total{change=%q} %d\n", change, times*len(keptThreads))
		if !strings.Contains(metrics, want) {
			k.Errorf("%s: the metrics do not have %q", when, want)
		}
	}
}

func (k *keepers) metrics() string {
	k.Helper()
	res, err := http.Get(k.p.url + "/metrics")
	if err != nil {
		k.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		k.Fatal(err)
	}
	return string(text)
}

// heads are the heads of the threads as they are stored, while no worker runs.
func (k *keepers) heads() map[string]*store.Head {
	k.Helper()
	k.p.kill()
	s := openStore(k.T, k.store)
	defer s.Close()
	out := map[string]*store.Head{}
	for _, thread := range keptThreads {
		head, err := s.Head(k.Context(), store.ThreadKey{Tenant: "default", Thread: thread})
		if err != nil {
			k.Fatal(err)
		}
		out[thread] = head
	}
	return out
}

// wantUntouched: what was refused is as it was, and the run that was taken over has
// ended with the states that it had.
func (k *keepers) wantUntouched(before, after map[string]*store.Head) {
	k.Helper()
	for _, thread := range keptThreads {
		a, b := before[thread], after[thread]
		if thread == "running" {
			if x, y := storedStates(k.T, a), storedStates(k.T, b); x != y {
				k.Errorf("the states of the run that was refused were %s and are %s", x, y)
			}
			continue
		}
		if a.ETag != b.ETag || a.Next != b.Next || !bytes.Equal(a.State, b.State) {
			k.Errorf("%s was changed:\n%s\n%s", thread, a.State, b.State)
		}
	}
}

// storedStates are the states in a head, with what says how to read them.
func storedStates(t *testing.T, h *store.Head) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(h.State, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]json.RawMessage{}
	for _, name := range []string{"sig", "states", "stateVersions", "newerStates", "redacted"} {
		if raw, ok := all[name]; ok {
			out[name] = raw
		}
	}
	if len(out["states"]) == 0 {
		t.Errorf("the head has no states: %s", h.State)
	}
	return mustText(t, out)
}

// TestDeployAtoBtoA: threads of every status, and one whose worker dies in the middle of a
// run, go from a deployment to one that has a state more, one less and one migrated over two
// steps. Back, that one is newer than what is known there: nothing runs and nothing changes,
// until it is said that it may start over; and what was set aside is there when the new
// deployment comes again.
func TestDeployAtoBtoA(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		k := newKeepers(t, newStore(t))
		k.deploy("--deployment=A")
		k.fill()
		k.deploy("--deployment=B")
		k.goOn(true)
		k.wantSaid("the new deployment", 1)
		// Under A they had counted 2, 3, 1 and 1.
		kept, gone := counts(formUnit, 4, 5, 3, 3), counts(formCount, 2, 3, 1, 1)
		k.wantStates("the new deployment", kept, gone, counts(formCount, 2, 2, 2, 2))
		k.fill()
		k.wantSaid("again", 1)

		before := k.heads()
		k.p = k.start("--deployment=A")
		k.wantRefused(codes.StateTooNew)
		k.wantUntouched(before, k.heads())

		k.p = k.start("--deployment=A", "--reset-newer")
		k.goOn(false)
		kept, gone = counts(formKept, 2, 2, 2, 2), counts(formCount, 4, 5, 3, 3)
		fresh := counts(formCount, 4, 5, 3, 3)
		k.wantStates("back", kept, gone, fresh)

		k.deploy("--deployment=B")
		for _, thread := range keptThreads {
			k.by[thread].wantEnd(k.by[thread].says("work 0"), "success")
		}
		k.wantStates("the new deployment again", counts(formUnit, 8, 10, 6, 6), gone, counts(formCount, 6, 7, 5, 5))
	})
}

// TestDeployMustFail: told to fail, the new deployment runs nothing and changes
// nothing, and the old one goes on as if nothing had been.
func TestDeployMustFail(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		k := newKeepers(t, newStore(t))
		k.deploy("--deployment=A")
		k.fill()
		before := k.heads()
		k.p = k.start("--deployment=B", "--schema-changes=fail")
		k.wantRefused(codes.SchemaChanged)
		k.wantUntouched(before, k.heads())
		k.p = k.start("--deployment=A", "--schema-changes=fail")
		k.goOn(false)
		k.wantStates("back", counts(formKept, 4, 5, 3, 3), counts(formCount, 4, 5, 3, 3), counts(""))
		k.wantSaid("back", 0)
	})
}
