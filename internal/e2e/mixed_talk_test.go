package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// The conversations of mixed builds: each begins at one server, is watched at two, and goes on
// at another one.

// converse has one conversation, of one of a few kinds.
func (m *mixed) converse(n int) {
	thread := fmt.Sprint("t", n)
	switch n % 7 {
	case 0:
		m.succeeds(thread, "r1", "plan 12 steps")
	case 1:
		m.succeeds(thread, "r1", "charge 12")
	case 2:
		m.succeeds(thread, "r1", "slow 6")
	case 3:
		m.cancels(thread)
	case 4:
		m.asks(thread).answer(m)
	case 5:
		m.handsOut(thread).answer(m)
	case 6:
		m.succeeds(thread, "r1", "parallel 4")
	}
	m.succeeds(thread, "next", "time")
	m.checkThread(thread)
}

// anywhere does something at the servers, each in turn, until one has done it.
func (m *mixed) anywhere(from int, what string, do func(url string) error) {
	wait.For(m.T, func() error {
		url := "http://" + m.addrs[from%len(m.addrs)]
		from++
		if err := do(url); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// begin starts a run, and leaves once it is accepted.
func (m *mixed) begin(url, thread, run, text string) {
	m.accept(url, input(thread, run, userMessage("u-"+run, text)))
	m.tally(func(c *mixedCount) { c.runs++ })
}

func (m *mixed) accept(url string, body []byte) {
	at := 0
	for i, addr := range m.addrs {
		if url == "http://"+addr {
			at = i
		}
	}
	m.anywhere(at, string(body), func(url string) error {
		res, err := post(m.Context(), url, body)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, res.Status)
		}
		return readStream(res.Body, func(record) bool { return true })
	})
}

// succeeds has a run that comes to a good end, watched at two servers.
func (m *mixed) succeeds(thread, run, text string) {
	m.begin("http://"+m.addrs[m.random(len(m.addrs))], thread, run, text)
	if end := m.watch(thread, run); end.kind() != "RUN_FINISHED" || strings.Contains(end.Raw, "cancelled") {
		m.Errorf("%s/%s ended with %s", thread, run, end.Raw)
	}
}

// watch follows a run at two servers, expects that they show the same, and returns its end.
func (m *mixed) watch(thread, run string) record {
	at := m.random(len(m.addrs))
	var views [2][]record
	var ends [2]record
	var both sync.WaitGroup
	for i := range views {
		both.Go(func() { views[i], ends[i] = m.follow(thread, run, at+i*(len(m.addrs)/2)) })
	}
	both.Wait()
	m.compare(thread+"/"+run, views[0], views[1])
	m.note(views[0])
	return ends[0]
}

// compare counts the records that one watcher has and the other one has not.
func (m *mixed) compare(what string, a, b []record) {
	for i := range min(len(a), len(b)) {
		if a[i].ID != b[i].ID || !sameEvent(a[i], b[i]) {
			m.Errorf("%s: watchers differ:\n%s %s\n%s %s", what, a[i].ID, a[i].Raw, b[i].ID, b[i].Raw)
			m.tally(func(c *mixedCount) { c.lost++ })
			return
		}
	}
	if len(a) != len(b) {
		m.Errorf("%s: one watcher has %d records, the other one %d", what, len(a), len(b))
		m.tally(func(c *mixedCount) { c.lost++ })
	}
}

// sameEvent compares two events without what the server that shows them says of them.
func sameEvent(a, b record) bool {
	text := func(r record) string {
		plain := map[string]any{}
		for name, value := range r.Data {
			if name != "metadata" {
				plain[name] = value
			}
		}
		out, err := json.Marshal(plain)
		return fmt.Sprint(string(out), err)
	}
	return text(a) == text(b)
}

// note counts what a run's records say.
func (m *mixed) note(records []record) {
	shown := map[string]string{}
	m.tally(func(c *mixedCount) {
		c.records += len(records)
		for _, r := range records {
			value, _ := r.Data["value"].(map[string]any)
			switch call, _ := r.Data["toolCallId"].(string); {
			case r.Data["name"] == "holdfast.takeover" && value["reason"] == "handed_over":
				c.handed++
			case r.Data["name"] == "holdfast.takeover":
				c.taken++
			case r.kind() == "TOOL_CALL_RESULT":
				if content, _ := r.Data["content"].(string); shown[call] != "" && shown[call] != content {
					c.doubled++
					m.Errorf("the call %s has two results: %s and %s", call, shown[call], content)
				} else {
					shown[call] = content
				}
			}
		}
	})
}

// follow reads a run's records to its end, at one server after the other: whenever a stream
// ends before the run, at the next one, with the cursor.
func (m *mixed) follow(thread, run string, at int) (seen []record, end record) {
	last := uint64(0)
	read := func(url string) error {
		req, err := http.NewRequestWithContext(m.Context(), http.MethodGet,
			url+"/threads/"+thread+"/runs/"+run+"/events", nil)
		if err != nil {
			return err
		}
		if len(seen) > 0 {
			req.Header.Set("Last-Event-ID", seen[len(seen)-1].ID)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, res.Status)
		}
		over := false
		err = readStream(res.Body, func(r record) bool {
			if r.ID == "" {
				return false
			}
			var number uint64
			if _, err := fmt.Sscanf(r.ID, "%d-", &number); err != nil || last > 0 && number != last+1 {
				m.Errorf("%s/%s: %s follows %d: %s", thread, run, r.ID, last, r.Raw)
				m.tally(func(c *mixedCount) {
					if number > last {
						c.lost++
					} else {
						c.doubled++
					}
				})
			}
			last = number
			seen, end = append(seen, r), r
			if r.kind() == "TOOL_CALL_RESULT" {
				m.finish(fmt.Sprint(thread, " ", r.Data["toolCallId"]))
			}
			over = r.kind() == "RUN_FINISHED" || r.kind() == "RUN_ERROR"
			return over
		})
		if !over {
			return fmt.Errorf("%s stops after %d: %w", url, last, err)
		}
		return nil
	}
	m.anywhere(at, thread+"/"+run+" does not end", read)
	return seen, end
}

// cancels begins a long answer, and cancels it at another server.
func (m *mixed) cancels(thread string) {
	at := m.random(len(m.addrs))
	m.begin("http://"+m.addrs[at], thread, "r1", "slow 1000")
	m.anywhere(at+1, "cancel "+thread, func(url string) error {
		res, err := http.Post(url+"/threads/"+thread+"/runs/r1/cancel", "application/json", nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("%s answers %s", url, res.Status)
		}
		return nil
	})
	if end := m.watch(thread, "r1"); !strings.Contains(end.Raw, "cancelled") {
		m.Errorf("%s, which was cancelled, ended with %s", thread, end.Raw)
	}
}

// sleeper is a thread that waits for an answer.
type sleeper struct {
	thread string
	answer func(m *mixed)
}

// sleepers has threads that wait for an answer while servers come and go.
func (m *mixed) sleepers(name string) []*sleeper {
	return []*sleeper{m.asks(name + "-asks"), m.handsOut(name + "-outside")}
}

// wake answers them.
func (m *mixed) wake(waiting []*sleeper) {
	m.Helper()
	for _, w := range waiting {
		w.answer(m)
		m.checkThread(w.thread)
	}
}

// asks begins a run that asks a person.
func (m *mixed) asks(thread string) *sleeper {
	m.begin("http://"+m.addrs[m.random(len(m.addrs))], thread, "r1", "ask me tea or coffee?")
	end := m.watch(thread, "r1")
	outcome, _ := end.Data["outcome"].(map[string]any)
	asked, _ := outcome["interrupts"].([]any)
	if len(asked) != 1 {
		m.Errorf("%s asks nothing: %s", thread, end.Raw)
		return &sleeper{thread, func(*mixed) {}}
	}
	answer := fmt.Sprintf(
		`{"threadId":%q,"runId":"r2","protocolVersion":"1.0","messages":[],"resume":[{"interruptId":%q,`+
			`"status":"resolved","payload":{"answer":"tea"}}]}`,
		thread,
		asked[0].(map[string]any)["id"],
	)
	return &sleeper{thread, func(m *mixed) {
		m.accept("http://"+m.addrs[m.random(len(m.addrs))], []byte(answer))
		m.tally(func(c *mixedCount) { c.runs++ })
		if end := m.watch(thread, "r2"); !strings.Contains(end.Raw, "success") {
			m.Errorf("%s was answered, and ended with %s", thread, end.Raw)
		}
	}}
}

// handsOut begins a run with a call that is finished from outside.
func (m *mixed) handsOut(thread string) *sleeper {
	m.begin("http://"+m.addrs[m.random(len(m.addrs))], thread, "r1",
		`use request_approval {"amount": 120, "subject": "a chair"}`)
	end := m.watch(thread, "r1")
	metadata, _ := end.Data["metadata"].(map[string]any)
	ours, _ := metadata["holdfast"].(map[string]any)
	calls, _ := ours["outsideCalls"].([]any)
	if len(calls) != 1 {
		m.Errorf("%s has handed out no call: %s", thread, end.Raw)
		return &sleeper{thread, func(*mixed) {}}
	}
	call, _ := calls[0].(map[string]any)["toolCallId"].(string)
	return &sleeper{thread, func(m *mixed) {
		m.anywhere(m.random(len(m.addrs)), "the result of "+thread, func(url string) error {
			res, err := http.Post(url+"/threads/"+thread+"/calls/"+call+"/result", "application/json",
				strings.NewReader(`{"result":{"approved":true,"reason":"it was mixed"}}`))
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("%s answers %s", url, res.Status)
			}
			return nil
		})
		m.anywhere(m.random(len(m.addrs)), thread+" does not go on", func(url string) error {
			messages, err := m.messages(url, thread)
			if n := len(messages); err == nil && (n != 4 || !strings.Contains(messages[2].Content, "it was mixed")) {
				err = fmt.Errorf("%+v", messages)
			}
			return err
		})
	}}
}

// mixedMessage is what is looked at of a message.
type mixedMessage struct {
	Role, Content, ToolCallID string
	ToolCalls                 []struct{ ID string }
}

// messages reads a thread.
func (m *mixed) messages(url, thread string) ([]mixedMessage, error) {
	res, err := http.Get(url + "/threads/" + thread + "/messages")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var body struct{ Messages []mixedMessage }
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s, %w", url, res.Status, err)
	}
	err = json.Unmarshal(text.Bytes(), &body)
	return body.Messages, err
}

// checkThread: every call has one result, and what a result says was charged, was.
func (m *mixed) checkThread(thread string) {
	m.anywhere(m.random(len(m.addrs)), "the messages of "+thread, func(url string) error {
		messages, err := m.messages(url, thread)
		if err != nil {
			return err
		}
		open := map[string]bool{}
		for _, message := range messages {
			for _, call := range message.ToolCalls {
				open[call.ID] = true
			}
			if message.Role == "tool" && !open[message.ToolCallID] {
				m.Errorf("%s: a result without an open call: %s", thread, message.ToolCallID)
				m.tally(func(c *mixedCount) { c.doubled++ })
			}
			delete(open, message.ToolCallID)
			if message.Role == "tool" && strings.Contains(message.Content, "Charged ") {
				m.tally(func(*mixedCount) { m.claims = append(m.claims, thread+" "+message.ToolCallID) })
			}
		}
		if len(open) > 0 || len(messages) == 0 {
			m.Errorf("%s: calls without results in %d messages: %v", thread, len(messages), open)
			m.tally(func(c *mixedCount) { c.lost++ })
		}
		return nil
	})
}
