package main

// The floor server: the least work that can serve a durable run, as a yardstick for
// Holdfast.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// floor is the least that can serve a durable run: net/http in and out, an event made
// from a chunk by searching for its text, each batch shown after its XADD is
// acknowledged, one MULTI per iteration. It checks nothing, resumes nothing and takes
// nothing over.
type floor struct {
	model string
	redis *redis.Client

	mu   sync.Mutex
	logs map[string]*floorLog // that somebody watches, by thread
}

// floorLog wakes those who watch a thread.
type floorLog struct {
	watchers int
	wake     chan struct{} // closed at the next batch
}

type floorMessage = map[string]any

func serveFloor(l net.Listener, model, redisURL string) error {
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return err
	}
	f := &floor{model: model, redis: redis.NewClient(o), logs: map[string]*floorLog{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /runs", f.run)
	mux.HandleFunc("GET /threads/{thread}/runs/{run}/events", f.events)
	return http.Serve(l, mux)
}

func (f *floor) run(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ThreadID, RunID string
		Messages        []floorMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "bad input", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := &floorStream{
		f:      f,
		ctx:    context.WithoutCancel(r.Context()),
		thread: in.ThreadID,
		w:      w,
		rc:     http.NewResponseController(w),
	}
	s.show([][]byte{fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, in.ThreadID, in.RunID)})
	messages := in.Messages
	for {
		calls, err := s.iterate(messages)
		if err != nil {
			return
		}
		fresh := []floorMessage{{"role": "assistant", "tool_calls": calls}}
		var results [][]byte
		for _, c := range calls {
			fresh = append(fresh, floorMessage{"role": "tool", "tool_call_id": c.ID,
				"content": strings.Repeat("x", 200)})
			results = append(results, fmt.Appendf(nil,
				`{"type":"TOOL_CALL_RESULT","toolCallId":%q,"messageId":"m","content":"%s"}`, c.ID,
				strings.Repeat("x", 200)))
		}
		pipe := f.redis.TxPipeline()
		for _, m := range fresh {
			b, _ := json.Marshal(m)
			pipe.RPush(s.ctx, "floor:m:"+in.ThreadID, b)
		}
		pipe.HSet(s.ctx, "floor:h:"+in.ThreadID, "iteration", len(messages))
		if _, err := pipe.Exec(s.ctx); err != nil {
			return
		}
		if len(calls) == 0 {
			s.show([][]byte{fmt.Appendf(nil, `{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, in.ThreadID,
				in.RunID)})
			return
		}
		s.show(results)
		messages = append(messages, fresh...)
	}
}

type floorCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// floorStream is one response.
type floorStream struct {
	f      *floor
	ctx    context.Context
	thread string
	w      io.Writer
	rc     *http.ResponseController
	buf    []byte
	events int // so far
}

// show stores a batch of events and sends it.
func (s *floorStream) show(events [][]byte) {
	pipe := s.f.redis.Pipeline()
	s.buf = s.buf[:0]
	for _, e := range events {
		s.events++
		pipe.XAdd(s.ctx, &redis.XAddArgs{Stream: "floor:l:" + s.thread, ID: strconv.Itoa(s.events) + "-0",
			Values: []any{"d", e}})
		s.buf = append(append(append(s.buf, "data: "...), e...), "\n\n"...)
	}
	if _, err := pipe.Exec(s.ctx); err != nil {
		return
	}
	s.f.wake(s.thread)
	// If the client went away, that is no concern of this program.
	_, _ = s.w.Write(s.buf)
	_ = s.rc.Flush()
}

// events shows a run after the event with the number that the client has, and follows it:
// one range of its stream, and again whenever there is a new batch.
func (f *floor) events(w http.ResponseWriter, r *http.Request) {
	thread, last := r.PathValue("thread"), r.Header.Get("Last-Event-ID")+"-0"
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	l := f.watch(thread)
	defer f.leave(thread, l)
	var buf []byte
	for {
		f.mu.Lock()
		wake := l.wake
		f.mu.Unlock()
		entries, err := f.redis.XRange(r.Context(), "floor:l:"+thread, "("+last, "+").Result()
		if err != nil {
			return
		}
		buf = buf[:0]
		for _, e := range entries {
			data, _ := e.Values["d"].(string)
			buf = append(append(append(buf, "data: "...), data...), "\n\n"...)
			last = e.ID
		}
		if _, err := w.Write(buf); err != nil || rc.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		}
	}
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

// iterate calls the model; whatever its stream yields while a batch is being stored
// becomes the next batch.
func (s *floorStream) iterate(messages []floorMessage) ([]floorCall, error) {
	body, err := json.Marshal(map[string]any{"model": "bench", "stream": true, "messages": messages})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.f.model+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	chunks := make(chan []byte, 256)
	go func() {
		defer close(chunks)
		defer res.Body.Close()
		for scan := bufio.NewScanner(res.Body); scan.Scan(); {
			if len(scan.Bytes()) > 0 {
				chunks <- bytes.Clone(scan.Bytes())
			}
		}
	}()
	var calls []floorCall
	for c := range chunks {
		batch := s.event(nil, c, &calls)
		for more := true; more; {
			select {
			case c, ok := <-chunks:
				batch, more = s.event(batch, c, &calls), ok
			default:
				more = false
			}
		}
		if len(batch) > 0 {
			s.show(batch)
		}
	}
	return calls, nil
}

// event turns the content of a chunk into an event, by searching for its text.
func (s *floorStream) event(batch [][]byte, chunk []byte, calls *[]floorCall) [][]byte {
	if _, text, ok := bytes.Cut(chunk, []byte(`"content":"`)); ok {
		text, _, _ = bytes.Cut(text, []byte(`"`))
		return append(batch, append(append([]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"`),
			text...), `"}`...))
	}
	if !bytes.Contains(chunk, []byte(`"tool_calls":`)) {
		return batch
	}
	var v struct {
		Choices []struct {
			Delta struct {
				ToolCalls []floorCall `json:"tool_calls"`
			}
		}
	}
	if json.Unmarshal(bytes.TrimPrefix(chunk, []byte("data: ")), &v) == nil && len(v.Choices) > 0 {
		for _, c := range v.Choices[0].Delta.ToolCalls {
			*calls = append(*calls, c)
			batch = append(batch, fmt.Appendf(nil, `{"type":"TOOL_CALL_START","toolCallId":%q,"toolCallName":%q}`,
				c.ID, c.Function.Name))
		}
	}
	return batch
}
