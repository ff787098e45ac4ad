package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// The fake provider of the bench. The answer is determined by the request, so that it has
// nothing to remember, and each token says when it was sent, so that the reader can tell how
// old it is.

// script is what a user message tells the fake model to do.
type script struct {
	rounds, calls int           // rounds of tool calls before the answer
	tokens        int           // tokens of the answer
	said          int           // tokens in each round, before its calls
	every         time.Duration // the pause between two tokens; 0 means none
	hold          time.Duration // how long the answer stays open after its last token
	// result is the length of a call's result; 0 stands for what the tool lookup says. The
	// tokens are then words, as long as those of a language.
	result int
}

// String is the message.
func (s script) String() string {
	return fmt.Sprintf("bench %d %d %d %d %d %d %d end", s.rounds, s.calls, s.tokens, s.said, s.every.Nanoseconds(),
		s.hold.Nanoseconds(), s.result)
}

func parseScript(body []byte) (s script, err error) {
	at := bytes.LastIndex(body, []byte("bench "))
	if at < 0 {
		return s, fmt.Errorf("no script in the request")
	}
	var every, hold int64
	_, err = fmt.Sscanf(string(body[at:min(len(body), at+120)]), "bench %d %d %d %d %d %d %d", &s.rounds, &s.calls,
		&s.tokens, &s.said, &every, &hold, &s.result)
	s.every, s.hold = time.Duration(every), time.Duration(hold)
	return s, err
}

// tokenLength is the length of a token: the time at which it was sent, in hex, and a
// space.
const tokenLength = 17

// appendToken appends a token with the current time.
func appendToken(b []byte) []byte {
	start := len(b)
	b = strconv.AppendInt(b, time.Now().UnixNano(), 16)
	for len(b)-start < tokenLength {
		b = append(b, ' ')
	}
	return b
}

// serveModel serves a provider's chat completions as cheaply as possible: one write per
// token.
func serveModel(l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /reports/{size}", serveReport)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s, err2 := parseScript(body)
		if err != nil || err2 != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		m := modelAnswer{w: w, rc: http.NewResponseController(w)}
		if bytes.Count(body, []byte(`"role":"assistant"`)) < s.rounds {
			m.say(s.said, s)
			m.calls(s)
			return
		}
		m.text(r, s)
	})
	return http.Serve(l, mux)
}

type modelAnswer struct {
	w   io.Writer
	rc  *http.ResponseController
	buf []byte
}

func (m *modelAnswer) flush() {
	// If the client went away, that is no concern of this program.
	_, _ = m.w.Write(m.buf)
	_ = m.rc.Flush()
	m.buf = m.buf[:0]
}

func (m *modelAnswer) calls(s script) {
	tool, arguments := "lookup", `{"term":"checkpoint"}`
	if s.result > 0 {
		tool, arguments = reportTool, fmt.Sprintf(`{"size":"%d"}`, s.result)
	}
	for i := range s.calls {
		m.buf = fmt.Appendf(
			m.buf,
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"call_%x_%d","type":"function",`+
				`"function":{"name":%q,"arguments":%q}}]}}]}`+"\n\n",
			i,
			time.Now().UnixNano(),
			i,
			tool,
			arguments,
		)
	}
	m.buf = append(m.buf, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+
		"\n\ndata: [DONE]\n\n"...)
	m.flush()
}

func (m *modelAnswer) say(tokens int, s script) {
	next := time.Now()
	for range tokens {
		if s.every > 0 {
			next = next.Add(s.every)
			time.Sleep(time.Until(next))
		}
		m.buf = append(m.buf, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk",`+
			`"choices":[{"index":0,"delta":{"content":"`...)
		if s.result > 0 {
			m.buf = append(append(m.buf, word()...), ' ')
		} else {
			m.buf = appendToken(m.buf)
		}
		m.buf = append(m.buf, `"}}]}`+"\n\n"...)
		m.flush()
	}
}

func (m *modelAnswer) text(r *http.Request, s script) {
	m.say(s.tokens, s)
	if s.hold > 0 {
		select {
		case <-time.After(s.hold):
		case <-r.Context().Done():
		}
	}
	m.buf = append(m.buf, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"...)
	m.flush()
}
