package main

// The floor server: the least work that can serve a durable run, as a yardstick for
// Holdfast.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// floor is the least that can serve a durable run: net/http in and out, an event made from a
// chunk by searching for its text, one XADD and one flush for what a read from the model
// brings, shown after it is acknowledged, and one MULTI per iteration. It decodes no JSON of a
// token, checks nothing, resumes nothing and takes nothing over.
type floor struct {
	model  string
	redis  *line
	client http.Client
	ids    atomic.Int64

	mu   sync.Mutex
	logs map[string]*floorLog // that somebody watches, by thread
}

// floorLog wakes those who watch a thread.
type floorLog struct {
	watchers int
	wake     chan struct{} // closed at the next batch
}

func serveFloor(l net.Listener, model, redisURL string) error {
	redis, err := dialRedis(strings.TrimPrefix(redisURL, "redis://"))
	if err != nil {
		return err
	}
	f := &floor{
		model:  model + "/chat/completions",
		redis:  redis,
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10_000, DisableCompression: true}},
		logs:   map[string]*floorLog{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /runs", f.run)
	mux.HandleFunc("GET /threads/{thread}/runs/{run}/events", f.events)
	return http.Serve(l, mux)
}

// floorRun is one run and its response.
type floorRun struct {
	f       *floor
	thread  string
	w       http.ResponseWriter
	rc      *http.ResponseController
	batch   []byte // events that are not stored yet
	events  int    // so far
	history []byte // the messages, as the model is given them
	message string // the id of the one that the model is writing
}

var floorResult = strings.Repeat("0123456789", 20)

func (f *floor) run(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ThreadID, RunID string
		Messages        []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "bad input", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := &floorRun{f: f, thread: in.ThreadID, w: w, rc: http.NewResponseController(w)}
	s.event(`{"type":"RUN_STARTED","threadId":"`, in.ThreadID, `","runId":"`, in.RunID, `"}`)
	if s.show() != nil {
		return
	}
	for i, m := range in.Messages {
		if i > 0 {
			s.history = append(s.history, ',')
		}
		s.history = append(s.history, m...)
	}
	for step := 0; ; step++ {
		known := len(s.history)
		calls, err := s.ask()
		if err != nil {
			return
		}
		for _, id := range calls {
			s.event(`{"type":"TOOL_CALL_RESULT","messageId":"`, s.id(), `","toolCallId":"`, id, `","content":"`,
				floorResult, `"}`)
			s.remember(`,{"role":"tool","tool_call_id":"`, id, `","content":"`, floorResult, `"}`)
		}
		checkpoint := command(nil, "MULTI")
		checkpoint = command(checkpoint, "RPUSH", "floor:m:"+s.thread, string(s.history[known:]))
		checkpoint = command(checkpoint, "HSET", "floor:h:"+s.thread, "iteration", strconv.Itoa(step))
		if f.redis.do(4, command(checkpoint, "EXEC")) != nil {
			return
		}
		if len(calls) == 0 {
			break
		}
	}
	s.event(`{"type":"RUN_FINISHED","threadId":"`, in.ThreadID, `","runId":"`, in.RunID, `"}`)
	_ = s.show() // that the client has gone is no concern of this program
}

func (s *floorRun) id() string { return "m" + strconv.FormatInt(s.f.ids.Add(1), 36) }

func (s *floorRun) event(parts ...string) {
	s.batch = append(s.batch, "data: "...)
	for _, p := range parts {
		s.batch = append(s.batch, p...)
	}
	s.batch = append(s.batch, "\n\n"...)
	s.events++
}

func (s *floorRun) remember(parts ...string) {
	for _, p := range parts {
		s.history = append(s.history, p...)
	}
}

// show stores the batch, and then sends it.
func (s *floorRun) show() error {
	if len(s.batch) == 0 {
		return nil
	}
	id := strconv.Itoa(s.events) + "-0"
	if err := s.f.redis.do(1, command(nil, "XADD", "floor:l:"+s.thread, id, "e", string(s.batch))); err != nil {
		return err
	}
	s.f.wake(s.thread)
	_, err := s.w.Write(s.batch)
	s.batch = s.batch[:0]
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// ask asks the model, shows what it says, and returns the ids of its calls.
func (s *floorRun) ask() (calls []string, err error) {
	body := append([]byte(`{"model":"bench","stream":true,"messages":[`), s.history...)
	res, err := s.f.client.Post(s.f.model, "application/json", bytes.NewReader(append(body, "]}"...)))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	s.remember(`,{"role":"assistant","content":"`)
	var named []byte // the calls as the history has them
	in := bufio.NewReaderSize(res.Body, 8<<10)
	for {
		if in.Buffered() == 0 {
			if err := s.show(); err != nil {
				return nil, err
			}
		}
		chunk, err := in.ReadSlice('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if text := member(chunk, `"content":"`); len(text) > 0 {
			s.say(text)
		} else if id := member(chunk, `"id":"call_`); id != nil {
			call := "call_" + string(id)
			calls = append(calls, call)
			named = s.call(named, call, string(member(chunk, `"name":"`)), string(member(chunk, `"arguments":"`)))
		}
	}
	if s.message != "" {
		s.event(`{"type":"TEXT_MESSAGE_END","messageId":"`, s.message, `"}`)
		s.message = ""
	}
	s.remember(`"`)
	if len(calls) > 0 {
		s.remember(`,"tool_calls":[`, string(named), `]`)
	}
	s.remember(`}`)
	return calls, s.show()
}

func (s *floorRun) say(text []byte) {
	if s.message == "" {
		s.message = s.id()
		s.event(`{"type":"TEXT_MESSAGE_START","messageId":"`, s.message, `","role":"assistant"}`)
	}
	s.remember(string(text))
	s.event(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"`, s.message, `","delta":"`, string(text), `"}`)
}

func (s *floorRun) call(named []byte, id, name, arguments string) []byte {
	s.event(`{"type":"TOOL_CALL_START","toolCallId":"`, id, `","toolCallName":"`, name, `"}`)
	s.event(`{"type":"TOOL_CALL_ARGS","toolCallId":"`, id, `","delta":"`, arguments, `"}`)
	s.event(`{"type":"TOOL_CALL_END","toolCallId":"`, id, `"}`)
	if len(named) > 0 {
		named = append(named, ',')
	}
	const call = `{"id":"%s","type":"function","function":{"name":"%s","arguments":"%s"}}`
	return fmt.Appendf(named, call, id, name, arguments)
}

// member returns the text behind a name in a chunk, as it stands there.
func member(chunk []byte, name string) []byte {
	_, text, found := bytes.Cut(chunk, []byte(name))
	for i := 0; found && i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i]
		}
	}
	return nil
}

// events shows a run after the event with the number that the client has, and follows it:
// one range of its stream, and again whenever there is a new batch.
func (f *floor) events(w http.ResponseWriter, r *http.Request) {
	thread := r.PathValue("thread")
	last, err := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	if err != nil {
		http.Error(w, "bad cursor", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	l := f.watch(thread)
	defer f.leave(thread, l)
	for {
		f.mu.Lock()
		wake := l.wake
		f.mu.Unlock()
		texts, err := f.redis.texts(command(nil, "XRANGE", "floor:l:"+thread, "("+strconv.Itoa(last)+"-0", "+"))
		if err != nil {
			return
		}
		// An entry is three texts: its id, the name of the field, and a batch that ends with
		// the event of that number.
		for ; len(texts) >= 3; texts = texts[3:] {
			number, _, _ := bytes.Cut(texts[0], []byte("-"))
			end, err := strconv.Atoi(string(number))
			if err != nil {
				return
			}
			if _, err := w.Write(after(texts[2], end, last)); err != nil {
				return
			}
			last = end
		}
		if rc.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		}
	}
}

// after returns the events of a batch behind the one with this number.
func after(batch []byte, end, number int) []byte {
	const mark = "\n\n"
	for skip := number - (end - bytes.Count(batch, []byte(mark))); skip > 0; skip-- {
		_, batch, _ = bytes.Cut(batch, []byte(mark))
	}
	return batch
}

// watch returns what wakes the watchers of a thread.
func (f *floor) watch(thread string) *floorLog {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.logs[thread]
	if l == nil {
		l = &floorLog{wake: make(chan struct{})}
		f.logs[thread] = l
	}
	l.watchers++
	return l
}

func (f *floor) leave(thread string, l *floorLog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.watchers--; l.watchers == 0 {
		delete(f.logs, thread)
	}
}

// wake wakes the watchers of a thread.
func (f *floor) wake(thread string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.logs[thread]; l != nil {
		close(l.wake)
		l.wake = make(chan struct{})
	}
}
