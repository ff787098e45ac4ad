package e2e

// The scenes of TestDeaths with calls that are finished from outside: the other side sends the
// result.

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

const outsideResult = `{"result":"done"}`

// playOutside makes the call, and sends its result to the first URL that was handed out.
func (d *trial) playOutside() cell {
	d.Helper()
	d.wantEnd(d.says("outside 1"), "success")
	tokens := d.tokens()
	var heard map[string]any
	switch d.moment {
	case atWaiting:
		d.strike()
		if !d.healed {
			d.heal()
		}
	case atArriving, atTaken:
		heard = d.breakOff(tokens[0])
	}
	code, first := d.send(tokens[0], outsideResult)
	if code != http.StatusOK || heard != nil && !maps.Equal(first, heard) {
		d.Errorf("the result is answered with %d %v; first, it was %v", code, first, heard)
	}
	d.hasEnded()
	d.sendMore(tokens, first)
	d.checkKeys()
	return d.count(outsideCall, said{text: d.historyResult()})
}

// tokens are those of the URLs that the call was handed out with.
func (d *trial) tokens() (tokens []string) {
	d.Helper()
	for _, line := range d.lines("peer got ") {
		u, err := url.Parse(fields(line)["url"])
		if err != nil {
			d.Fatal(err)
		}
		tokens = append(tokens, u.Query().Get("token"))
	}
	if len(tokens) == 0 {
		d.Fatalf("the call was not handed out: %s", d.p.out)
	}
	return tokens
}

// breakOff sends the result, but its sender gets no answer, or this server does not get all
// of it.
func (d *trial) breakOff(token string) map[string]any {
	d.Helper()
	if d.dies == diesHoldfast {
		code, heard, err := trySend(d.T, d.p.url+"/calls?token="+url.QueryEscape(token), outsideResult)
		if !d.p.died() {
			d.Fatalf("the server did not die %s: %s", d.crew.crash, d.p.out)
		}
		d.crew.kill(d.p.name)
		if err != nil {
			return nil
		}
		if code != http.StatusOK {
			d.Fatalf("%d %v", code, heard)
		}
		return heard
	}
	r, err := http.NewRequest(http.MethodPost, d.p.url+"/calls?token="+url.QueryEscape(token),
		strings.NewReader(outsideResult))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	var request strings.Builder
	if err := r.Write(&request); err != nil {
		d.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		d.Fatal(err)
	}
	defer conn.Close()
	text := request.String()
	if d.moment == atArriving {
		text = text[:len(text)-len(outsideResult)/2]
	}
	if _, err := io.WriteString(conn, text); err != nil {
		d.Fatal(err)
	}
	if d.moment == atTaken {
		d.hasEnded() // the answer is on its way, and nobody reads it
	}
	if tcp, ok := conn.(*net.TCPConn); ok && d.dies == diesNetwork {
		_ = tcp.SetLinger(0) // a reset, and not an end
	}
	return nil
}

// sendMore: the result has been taken. The same is answered in the same way, at each URL; any
// other is refused, and so is a URL of nobody's.
func (d *trial) sendMore(tokens []string, first map[string]any) {
	d.Helper()
	for _, token := range tokens {
		if code, again := d.send(token, outsideResult); code != http.StatusOK || !maps.Equal(again, first) {
			d.Errorf("again: %d %v, first %v", code, again, first)
		}
		if code, other := d.send(token, `{"result":"no"}`); code != http.StatusConflict ||
			other["code"] != codes.CallAlreadyAnswered {
			d.Errorf("another result: %d %v", code, other)
		}
	}
	if code, refused := d.send(tokens[0]+"x", outsideResult); code != http.StatusNotFound {
		d.Errorf("another token: %d %v", code, refused)
	}
}

// historyResult is the call's one result in the history, after which the model has answered.
func (d *trial) historyResult() string {
	d.Helper()
	var body struct {
		Messages []struct{ Role, Content string }
	}
	getJSON(d.T, d.p.url+"/threads/t/messages", &body)
	var results []string
	for _, m := range body.Messages {
		if m.Role == "tool" {
			results = append(results, m.Content)
		}
	}
	if len(results) != 1 || body.Messages[len(body.Messages)-1].Content != "Done." {
		d.Fatalf("the history is %+v", body.Messages)
	}
	return results[0]
}

// send sends a result to a call's URL, on the worker that is spoken to now.
func (k *talk) send(token, result string) (int, map[string]any) {
	k.Helper()
	return sendResult(k.T, k.p.url+"/calls?token="+url.QueryEscape(token), result)
}

// sendResult sends a result until it is answered, and returns the status with the answer or
// what is said of the error.
func sendResult(t *testing.T, to, result string) (code int, answer map[string]any) {
	t.Helper()
	wait.For(t, func() (err error) {
		code, answer, err = trySend(t, to, result)
		return err
	})
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
	wait.For(k.T, func() error {
		info := map[string]any{}
		getJSON(k.T, k.p.url+"/threads/t", &info)
		if info["status"] == "idle" && info["outsideCalls"] == nil {
			return nil
		}
		return fmt.Errorf("the thread is still %v", info)
	})
}
