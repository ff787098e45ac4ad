package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// TestErrorsInDisguise: the errors of some servers look like an empty answer to a client
// that reads only data and choices.
func TestErrorsInDisguise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream, public, cause string
		retry                 bool
	}{
		"a field of its own, as llama.cpp had until the end of 2025": {
			"error: {\"code\":400,\"message\":\"the request exceeds the available context " +
				"size\",\"type\":\"invalid_request_error\"}\n\n" +
				done,
			"too long for the model", "exceeds the available", false,
		},
		"a field of its own that is no JSON": {"error: GPU on fire\n\n" + done, "broke off its answer", "GPU on fire",
			true},
		"a named event": {"event: error\ndata: {\"message\":\"GPU on fire\"}\n\n" + done,
			"broke off its answer", "GPU on fire", true},
		"a named event with an error": {"event: error\ndata: {\"error\":{\"message\":\"GPU on fire\"}}\n\n" +
			done, "broke off its answer", "GPU on fire", true},
		"an object that says so": {sse(`{"object":"error","message":"slow down","type":"x","code":429}`) +
			done, "limits the rate", "slow down", true},
		"an error that is neither": {sse(`{"error":["GPU on fire"]}`) + done, "broke off its answer",
			"GPU on fire", true},
		"a finish reason, as OpenRouter has": {finish("error") + done, "broke off its answer", "finish reason", true},
		"a call that never gets a name": {delta(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`) +
			finish("tool_calls") +
			done,
			"without a name", "name", true},
		"a web page, from a wrong base URL": {"<!doctype html>\n<html>welcome</html>\n", "base URL", "welcome", true},
		"JSON that is said to be a stream": {`{"error":{"message":"bad key","code":"invalid_api_key"}}`,
			"refused the server's key", "bad key", false},
		"JSON in an array, as Gemini has": {`[{"error":{"message":"bad key","code":401}}]`,
			"refused the server's key", "bad key", false},
		"an error in a chunk with its choice": {sse(`{"error":{"message":"slow","code":502},` +
			`"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`),
			"overloaded", "slow", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t.Context(), t, served(t, says(c.stream)))
			if got.err == nil {
				t.Fatalf("it was taken for an answer: %+v", got)
			}
			if got.err.Retryable != c.retry || !strings.Contains(got.err.Public, c.public) ||
				!strings.Contains(got.err.Error(), c.cause) {
				t.Errorf("retry %v, public %q, log %v", got.err.Retryable, got.err.Public, got.err)
			}
		})
	}
}

// TestOddButWhole covers answers that are complete, however odd they look.
func TestOddButWhole(t *testing.T) {
	t.Parallel()
	x := delta(`{"content":"x"}`)
	piece := func(json string) string { return delta(`{"tool_calls":[` + json + `]}`) }
	for name, c := range map[string]struct {
		stream string
		want   said
	}{
		"empty events": {"data:\n\n" + x + "data: \n\ndata\n\n" + finish("stop") + done,
			said{text: "x", finish: holdfast.FinishStop}},
		"spaces around the end":    {x + "data:  [DONE] \n\n", said{text: "x", finish: holdfast.FinishStop}},
		"garbage after the finish": {x + finish("stop") + sse(`{"choi`), said{text: "x", finish: holdfast.FinishStop}},
		"an error after the finish": {x + finish("stop") + sse(`{"error":"no usage"}`),
			said{text: "x", finish: holdfast.FinishStop}},
		"the name comes late": {piece(`{"index":0,"id":"a","function":{"arguments":"{"}}`) +
			piece(`{"index":0,"function":{"name":"one","arguments":"}"}}`) + done,
			said{calls: []string{"0 a one {}"}, finish: holdfast.FinishToolCalls}},
		"the id comes late": {piece(`{"index":0,"function":{"name":"one","arguments":"{"}}`) +
			piece(`{"index":0,"id":"a","function":{"arguments":"}"}}`) + done,
			said{calls: []string{"0  one {}"}, finish: holdfast.FinishToolCalls}},
		"another id in each piece": {piece(`{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}`) +
			piece(`{"index":0,"id":"b","function":{"arguments":"}"}}`) + done,
			said{calls: []string{"0 a one {}"}, finish: holdfast.FinishToolCalls}},
		"the name in each piece": {piece(`{"index":0,"function":{"name":"one","arguments":"{"}}`) +
			piece(`{"index":0,"function":{"name":"one","arguments":"}"}}`) + done,
			said{calls: []string{"0  one {}"}, finish: holdfast.FinishToolCalls}},
		"index 0 again, no ids": {piece(`{"index":0,"function":{"name":"one","arguments":"{}"}}`) +
			piece(`{"index":0,"function":{"name":"two","arguments":"{}"}}`) + done,
			said{calls: []string{"0  one {}", "1  two {}"}, finish: holdfast.FinishToolCalls}},
		"index 0 twice, interleaved": {piece(`{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}`) +
			piece(`{"index":0,"id":"b","function":{"name":"two","arguments":"{"}}`) +
			piece(`{"index":0,"id":"a","function":{"arguments":"}"}}`) +
			piece(`{"index":0,"id":"b","function":{"arguments":"}"}}`) + done,
			said{calls: []string{"0 a one {}", "1 b two {}"}, finish: holdfast.FinishToolCalls}},
		"one id, two indexes": {piece(`{"index":0,"id":"call","function":{"name":"f","arguments":"{}"}}`) +
			piece(`{"index":1,"id":"call","function":{"name":"f","arguments":"{}"}}`) + done,
			said{calls: []string{"0 call f {}", "1 call f {}"}, finish: holdfast.FinishToolCalls}},
		"index 0 again, same name": {piece(`{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}`) +
			piece(`{"index":0,"id":"b","function":{"name":"one","arguments":"{}"}}`) + done,
			said{calls: []string{"0 a one {}", "1 b one {}"}, finish: holdfast.FinishToolCalls}},
		"an empty call": {x + piece(`{"index":0}`) + finish("stop") + done,
			said{text: "x", finish: holdfast.FinishStop}},
		"tool_calls without any": {x + finish("tool_calls") + done, said{text: "x", finish: holdfast.FinishStop}},
		"cut in a call": {piece(`{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}`) +
			finish("length") + done, said{calls: []string{"0 a one {"}, finish: holdfast.FinishLength}},
		"JSON that is not said to be": {`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
			said{text: "x", finish: holdfast.FinishStop}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t.Context(), t, served(t, says(c.stream)))
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// TestStatusDecides: after which refusals another attempt may help.
func TestStatusDecides(t *testing.T) {
	t.Parallel()
	for status, retry := range map[int]bool{
		400: false, 401: false, 402: false, 403: false, 404: false, 405: false, 413: false, 422: false,
		408: true, 409: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true, 529: true,
	} {
		m := served(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		got := ask(t.Context(), t, m)
		if got.err == nil || got.err.Retryable != retry || got.err.Public == "" {
			t.Errorf("%d: %+v", status, got.err)
		}
	}
}

// TestTooLongInWords: providers without a code for it say it in words.
func TestTooLongInWords(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"vLLM": `{"error":{"message":"You passed 1015 input tokens. However, the model's context length is ` +
			`only 1024 tokens","type":"BadRequestError","code":400}}`,
		"vLLM until 0.9": `{"object":"error","message":"This model's maximum context length is 131072 ` +
			`tokens.","type":"BadRequestError","code":400}`,
		"llama.cpp": `{"error":{"code":400,"message":"too big","type":"exceed_context_size_error","n_ctx":4096}}`,
	} {
		m := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, body)
		})
		if got := ask(t.Context(), t, m); got.err == nil || got.err.Retryable ||
			!strings.Contains(got.err.Public, "too long for the model") {
			t.Errorf("%s: %+v", name, got.err)
		}
	}
}

// TestRefusalInAList: Gemini sends an error as the only element of a list.
func TestRefusalInAList(t *testing.T) {
	t.Parallel()
	m := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `[{"error":{"code":"invalid_api_key","message":"key not valid"}}]`)
	})
	if got := ask(t.Context(), t, m); got.err == nil || !strings.Contains(got.err.Public, "refused the server's key") {
		t.Errorf("%+v", got.err)
	}
}

// TestRedirect: a provider cannot send the conversation, and the headers with it, to another
// place. The log is told which one; what else the address says may be a secret.
func TestRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere++
		says(delta(`{"content":"x"}`)+finish("stop")+done)(w, r)
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308, 300, 304} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/chat/completions" {
				elsewhere++
			}
			w.Header().Set("Location", other.URL+"/new?token=hush")
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		for _, client := range []*http.Client{nil, s.Client()} {
			m, err := New(Options{BaseURL: s.URL, Model: "m", Key: "k", HTTP: client})
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t.Context(), t, m)
			if got.err == nil || got.err.Retryable || !strings.Contains(got.err.Public, "check the base URL") {
				t.Errorf("%d: %+v", status, got)
				continue
			}
			if text := got.err.Error(); !strings.Contains(text, other.URL) || strings.Contains(text, "hush") {
				t.Errorf("%d: the log is told %q", status, text)
			}
		}
	}
	if elsewhere > 0 {
		t.Errorf("%d requests went elsewhere", elsewhere)
	}
}

// TestOwnRuleForRedirects: a client with a rule of its own keeps it.
func TestOwnRuleForRedirects(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/new" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			return
		}
		says(delta(`{"content":"x"}`)+finish("stop")+done)(w, r)
	}))
	t.Cleanup(s.Close)
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	m, err := New(Options{BaseURL: s.URL, Model: "m", HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t.Context(), t, m); got.text != "x" {
		t.Errorf("%+v", got)
	}
}

// roundTrip is a transport that answers at once.
type roundTrip func(*http.Request) (int, io.ReadCloser)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := f(r)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: body, Request: r}, nil
}

// answerBody records what happened to it.
type answerBody struct {
	io.Reader
	ended, closed bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

func (b *answerBody) Close() error {
	b.closed = true
	return nil
}

// TestConnectionsAreReused: net/http reuses a connection if its response was read to the
// end and closed, so every response is, whatever it says.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"an answer":             {http.StatusOK, delta(`{"content":"x"}`) + finish("stop") + done},
		"more after [DONE]":     {http.StatusOK, finish("stop") + done + strings.Repeat(": bye\n", 100)},
		"without [DONE]":        {http.StatusOK, finish("stop")},
		"without a finish":      {http.StatusOK, delta(`{"content":"x"}`)},
		"in one piece":          {http.StatusOK, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`},
		"a refusal":             {http.StatusServiceUnavailable, `{"error":"busy"}`},
		"a refusal with a page": {http.StatusBadGateway, strings.Repeat("<p>", 1000)},
	} {
		body := &answerBody{Reader: strings.NewReader(c.body)}
		m, err := New(Options{
			Model: "m",
			Key:   key,
			HTTP: &http.Client{
				Transport: roundTrip(func(*http.Request) (int, io.ReadCloser) { return c.status, body }),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for d := range m.Stream(t.Context(), &holdfast.ModelRequest{}) {
			if d.Finish != "" {
				break // as the loop does
			}
		}
		if !body.ended || !body.closed {
			t.Errorf("%s: read to its end: %v, closed: %v", name, body.ended, body.closed)
		}
	}
}

// TestSilentEnd: a provider that leaves the connection open after its answer delays the
// answer only briefly, and usage that comes late counts.
func TestSilentEnd(t *testing.T) {
	t.Parallel()
	late := sse(`{"choices":[],"usage":{"total_tokens":3}}`)
	for name, c := range map[string]struct {
		stream string
		bound  time.Duration
		want   holdfast.FinishReason // empty for an error
	}{
		"after a finish reason": {delta(`{"content":"x"}`) + finish("stop") + late, afterFinish, holdfast.FinishStop},
		"after [DONE]": {delta(`{"content":"x"}`) + finish("stop") + late + done, time.Second,
			holdfast.FinishStop},
		"after a useless answer": {
			delta(`{"content":"x","tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`) + finish("stop") + late +
				done, time.Second, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := New(Options{
					Model: "m",
					Key:   key,
					HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (int, io.ReadCloser) {
						out, in := io.Pipe()
						go func() {
							_, _ = io.WriteString(in, c.stream)
							<-r.Context().Done()
							_ = in.CloseWithError(r.Context().Err())
						}()
						return http.StatusOK, out
					})},
				})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				got := ask(t.Context(), t, m)
				if got.text != "x" || got.finish != c.want || (got.err == nil) != (c.want != "") {
					t.Errorf("%+v", got)
				}
				if c.want != "" && !strings.Contains(got.usage, `"totalTokens":3`) {
					t.Errorf("the late usage is lost: %+v", got)
				}
				if took := time.Since(began); took > c.bound {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestBrokenAfterFinish: a stream that breaks after the finish reason changes nothing.
func TestBrokenAfterFinish(t *testing.T) {
	t.Parallel()
	m := served(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, delta(`{"content":"x"}`)+finish("stop"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if got := ask(t.Context(), t, m); got.err != nil || got.text != "x" || got.finish != holdfast.FinishStop {
		t.Errorf("%+v", got)
	}
}

// TestTryAgain: a provider that was busy once answers the next call.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	m := served(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		says(delta(`{"content":"x"}`)+finish("stop")+done)(w, r)
	})
	if got := ask(t.Context(), t, m); got.err == nil || !got.err.Retryable || asked.Load() != 1 {
		t.Errorf("after %d requests: %+v", asked.Load(), got)
	}
	if got := ask(t.Context(), t, m); got.text != "x" {
		t.Errorf("%+v", got)
	}
}

// TestOwnHeaders: the operator's headers are sent, and their values stay out of the log.
func TestOwnHeaders(t *testing.T) {
	t.Parallel()
	const secret = "azure-secret-key"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		http.Error(w, "wrong key "+r.Header.Get("api-key")+" of "+r.Header.Get("X-Title")+" with "+token,
			http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	m, err := New(Options{
		BaseURL: s.URL,
		Model:   "m",
		HTTP:    s.Client(),
		Headers: map[string]string{"api-key": secret, "X-Title": "us", "Authorization": "Bearer " + key},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t.Context(), t, m)
	if got.err == nil || !strings.Contains(got.err.Error(), "wrong key [secret] of us with [secret]") {
		t.Errorf("%v", got.err)
	}
	for name, h := range map[string]map[string]string{
		"a line end": {"X": secret + "\nY: 1"}, "no name": {"": secret}, "a space": {"a b": secret},
		"ours": {"content-type": secret},
	} {
		if _, err := New(Options{Model: "m", Key: key, Headers: h}); err == nil ||
			strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Model: "m", Key: key + "\n"}); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("a key with a line end: %v", err)
	}
}

// TestArguments: a model's arguments are always sent back as a JSON object, because
// otherwise Ollama and others refuse the whole conversation.
func TestArguments(t *testing.T) {
	t.Parallel()
	for wrote, sent := range map[string]string{
		`{"x": 1}`: `{"x": 1}`,
		` {"x":1}`: ` {"x":1}`,
		``:         `{}`,
		`null`:     `{}`,
		`{"x":`:    `{"invalid_arguments":"{\"x\":"}`,
		`"x"`:      `{"invalid_arguments":"\"x\""}`,
		`[1]`:      `{"invalid_arguments":"[1]"}`,
	} {
		w, _ := (&Model{client: &modelhttp.Client{}}).message(&holdfast.Message{
			Role:  holdfast.RoleAssistant,
			Calls: []holdfast.ToolCall{{ID: "a", Name: "f", Arguments: json.RawMessage(wrote)}},
		})
		if got := w.ToolCalls[0].Function.Arguments; got != sent {
			t.Errorf("%q is sent as %q, want %q", wrote, got, sent)
		}
	}
}

// TestCancelled: a caller that gave up gets its own reason, not ours.
func TestCancelled(t *testing.T) {
	t.Parallel()
	reason := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	m := served(t, says(done))
	for _, err := range m.Stream(ctx, &holdfast.ModelRequest{}) {
		if !errors.Is(err, reason) {
			t.Errorf("%v", err)
		}
	}
}
