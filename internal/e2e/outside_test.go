package e2e

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
)

// TestOutsideCallSurvives kills a worker at each step of a call that is finished from
// outside, and again while the thread waits. The call is handed out at least once, each time
// with the same key, and any of its URLs finishes it, once, on whichever worker.
func TestOutsideCallSurvives(t *testing.T) {
	t.Parallel()
	for moment, delivered := range map[string]int{
		"":          1, // only while it waits
		"decided":   1, // the call is not committed
		"deliver":   1, // the token is committed, and nobody has the URL
		"delivered": 2, // somebody has the URL, which is not known here
	} {
		t.Run("killed at "+moment, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
				k := newCrew(t, newStore(t)).talk("outsider", "t")
				if moment != "" {
					k.hold("t", moment, 0)
				}
				k.begin()
				k.watch = func() {
					for _, line := range k.news() {
						if strings.HasPrefix(line, "held ") {
							k.kill(fields(line)["proc"])
						}
					}
				}
				k.wantEnd(k.says("outside 1 + work 2, work 3"), "success")
				if held := len(k.lines("held ")); (held == 1) != (moment != "") {
					t.Fatalf("killed %d times", held)
				}
				k.kill(k.p.name)
				k.finishOutside(delivered)
			})
		})
	}
}

// finishOutside finishes the call, and checks what came of it.
func (k *talk) finishOutside(delivered int) {
	k.Helper()
	lines, keys := k.lines("delivered "), map[string]bool{}
	var tokens []string
	for _, line := range lines {
		f := fields(line)
		keys[f["key"]] = true
		u, err := url.Parse(f["url"])
		if err != nil {
			k.Fatal(err)
		}
		tokens = append(tokens, u.Query().Get("token"))
	}
	if len(tokens) != delivered || len(keys) != 1 {
		k.Fatalf("handed out %d times, want %d:\n%s", len(tokens), delivered, strings.Join(lines, "\n"))
	}
	code, first := k.send(tokens[0], `{"result":"ok"}`)
	if code != http.StatusOK {
		k.Fatalf("the result: %d %v", code, first)
	}
	k.hasEnded()
	k.kill(k.p.name)
	for _, token := range tokens {
		if code, again := k.send(token, `{"result":"ok"}`); code != http.StatusOK || !maps.Equal(again, first) {
			k.Errorf("again: %d %v, first %v", code, again, first)
		}
		if code, other := k.send(token, `{"result":"no"}`); code != http.StatusConflict || other["code"] != codes.CallAlreadyAnswered {
			k.Errorf("another result: %d %v", code, other)
		}
	}
	if code, refused := k.send(tokens[0]+"x", `{"result":"ok"}`); code != http.StatusNotFound {
		k.Errorf("another token: %d %v", code, refused)
	}
	var body struct {
		Messages []struct{ Role, Content string }
	}
	getJSON(k.T, k.p.url+"/threads/t/messages", &body)
	results := 0
	for _, m := range body.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	if last := body.Messages[len(body.Messages)-1]; results != 3 || last.Content != "Done." {
		k.Errorf("the history is %+v", body.Messages)
	}
}

// send sends a result to a call's URL, on the worker that is spoken to now.
func (k *talk) send(token, result string) (int, map[string]any) {
	k.Helper()
	return sendResult(k.T, k.p.url+"/calls?token="+url.QueryEscape(token), result)
}

// sendResult sends a result until it is answered, and returns the status with the answer or
// what is said of the error.
func sendResult(t *testing.T, to, result string) (int, map[string]any) {
	t.Helper()
	code, answer, err := trySend(t, to, result)
	for begun := time.Now(); err != nil && time.Since(begun) < patience; code, answer, err = trySend(t, to, result) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	return code, answer
}

func trySend(t *testing.T, to, result string) (int, map[string]any, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(result))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, err
	}
	var answer struct {
		Error map[string]any `json:"error"`
	}
	ok := map[string]any{}
	if err := json.Unmarshal(b, &ok); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if err := json.Unmarshal(b, &answer); err == nil && answer.Error != nil {
		return res.StatusCode, answer.Error, nil
	}
	return res.StatusCode, ok, nil
}

// hasEnded waits until the thread does not run and waits for nothing.
func (k *talk) hasEnded() {
	k.Helper()
	var info map[string]any
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		info = map[string]any{}
		getJSON(k.T, k.p.url+"/threads/t", &info)
		if info["status"] == "idle" && info["outsideCalls"] == nil {
			return
		}
	}
	k.Fatalf("the thread is still %v", info)
}

// TestOutsideResultSurvives kills the server by its own hand around the commit that takes a
// result. Whoever sent it heard nothing, sends it again, and gets the one answer.
func TestOutsideResultSurvives(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
		crashing := buildCrashing(t)
		for _, point := range []string{"before begin 2", "after begin 2", "before result 1"} {
			t.Run(strings.ReplaceAll(point, " ", "_"), func(t *testing.T) {
				t.Parallel()
				k := newCrashKiller(t, newStore(t), "on")
				k.p = k.startCrashing(crashing, "HOLDFAST_CRASH="+point)
				res, err := post(t.Context(), k.p.url, input("t", "r1", userMessage("u1", `use request_approval {"amount": 1}`)))
				if err != nil {
					t.Fatal(err)
				}
				var last record
				err = readStream(res.Body, func(r record) bool { last = r; return false })
				res.Body.Close()
				if err != nil || last.kind() != "RUN_FINISHED" {
					t.Fatalf("%v %s", err, last.Raw)
				}
				metadata, _ := last.Data["metadata"].(map[string]any)
				holdfast, _ := metadata["holdfast"].(map[string]any)
				calls, _ := holdfast["outsideCalls"].([]any)
				if len(calls) != 1 {
					t.Fatalf("the run ends with %s", last.Raw)
				}
				path := "/threads/t/calls/" + calls[0].(map[string]any)["toolCallId"].(string) + "/result"
				code, heard, err := trySend(t, k.p.url+path, `{"result":{"approved":true}}`)
				if err == nil && code != http.StatusOK {
					t.Fatalf("%d %v", code, heard)
				}
				if !k.p.died(10 * time.Second) {
					t.Fatalf("the server did not die %s: %s", point, k.p.out)
				}
				k.p = start(t, k.addr, k.store, k.args...)
				k.killAfter(k.p, crashLimit)
				_, first := sendResult(t, k.p.url+path, `{"result":{"approved":true}}`)
				if err == nil && !maps.Equal(heard, first) {
					t.Errorf("first %v, then %v", heard, first)
				}
				w := &watcher{killer: k, thread: "t", run: first["runId"].(string)}
				end := w.follow()
				if outcome, _ := end.Data["outcome"].(map[string]any); outcome["type"] != "success" {
					t.Errorf("the run that goes on ends with %s", end.Raw)
				}
				if _, again := sendResult(t, k.p.url+path, `{"result":{"approved":true}}`); !maps.Equal(again, first) {
					t.Errorf("first %v, then %v", first, again)
				}
				if code, other := sendResult(t, k.p.url+path, `{"result":{"approved":false}}`); code != http.StatusConflict {
					t.Errorf("another result: %d %v", code, other)
				}
				checkOneResult(t, k)
			})
		}
	})
}

// checkOneResult: the history has the call's result once, and an answer.
func checkOneResult(t *testing.T, k *killer) {
	t.Helper()
	var body struct {
		Messages []struct{ Role, Content string }
	}
	getJSON(t, k.p.url+"/threads/t/messages", &body)
	var roles []string
	for _, m := range body.Messages {
		roles = append(roles, m.Role)
	}
	if want := []string{"user", "assistant", "tool", "assistant"}; !slices.Equal(roles, want) || body.Messages[2].Content != `{"approved":true}` {
		t.Errorf("the history is %+v", body.Messages)
	}
}
