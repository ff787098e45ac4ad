// Package remote has agents that run elsewhere and speak AG-UI: in another program, in another
// language. One of them is the model of an agent here:
//
//	far, err := remote.New(remote.Options{URL: "http://localhost:8000/agent"})
//	agent := holdfast.Agent{Name: "planner", Model: far, State: &sharedstate.Options{Show: "all"}}
//
// Each of its messages is stored before it is shown, so runs survive the death of either side, and
// streams, histories, forks, limits and questions are those of any other agent. The agent's tools
// here are offered to it as tools of a frontend; its own tools run where it is, and their calls and
// results become part of the history as they come. In an agents file it is the key remote.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/model"
)

// Options say which agent is asked, and how. Only URL is required.
type Options struct {
	// URL is where the agent takes a RunAgentInput.
	URL string
	// Name is what logs, metrics and usage call it; default the host of URL.
	Name string
	// Headers are further headers of each request. Their values are kept out of the log.
	Headers map[string]string
	// History is what of the conversation it is sent: "all" (default), or "new" if it keeps the
	// conversation itself, by the id of the thread.
	History string
	// OnCut is what happens if the agent is lost in the middle of a call of its own that may have
	// had an effect: "ask" a person (default), "retry", where the agent is told that the outcome
	// is unknown, or "fail", which ends the run.
	OnCut string
	// Effects say what calling its own tools twice would do, by their names. A tool that is not
	// in it is [holdfast.EffectOnce].
	Effects map[string]holdfast.Effect
	// Timeout is how long it may send nothing; default 5 minutes.
	Timeout time.Duration
	// RoundTripper puts something around what sends the requests, such as a
	// [credential.Transport]; it may be nil.
	//
	// [credential.Transport]: https://pkg.go.dev/github.com/holdfast-agents/holdfast/credential#Transport
	RoundTripper func(base http.RoundTripper) http.RoundTripper
	// HTTP makes the requests; the default is a client with its own connections. It must not have
	// an overall timeout.
	HTTP *http.Client
}

// The values of History and OnCut.
const (
	historyAll = "all"
	historyNew = "new"
	cutAsk     = "ask"
	cutRetry   = "retry"
	cutFail    = "fail"
)

// doubtFail ends the run; see [holdfast.CallDelta].Own.
const doubtFail holdfast.Doubt = "fail"

// Agent is an agent elsewhere, as a model. It may be used concurrently.
type Agent struct {
	client  *modelhttp.Client
	path    string // behind the client's base URL
	name    string
	onlyNew bool
	inDoubt holdfast.Doubt
	effects map[string]holdfast.Effect
}

var _ holdfast.Model = (*Agent)(nil)

// provider is the name of all remote agents' provider in usage, errors and metrics.
const provider = "remote"

// New checks the options. It does not send anything.
func New(o Options) (*Agent, error) {
	u, err := o.check()
	if err != nil {
		return nil, err
	}
	a := &Agent{name: cmp.Or(o.Name, u.Host), onlyNew: o.History == historyNew, effects: maps.Clone(o.Effects)}
	a.inDoubt = map[string]holdfast.Doubt{
		"": holdfast.DoubtAsk, cutAsk: holdfast.DoubtAsk, cutRetry: holdfast.DoubtTell, cutFail: doubtFail,
	}[o.OnCut]
	if strings.HasSuffix(u.Path, "/") { // a server may know only one of the two
		a.path = "/"
	}
	a.client, err = modelhttp.New(modelhttp.Provider{
		Name:       provider,
		API:        "ag-ui",
		URLExample: "http://localhost:8000/agent",
		KeyHeader:  "Authorization",
	}, model.Options{
		Model:   a.name,
		BaseURL: o.URL,
		Headers: o.Headers,
		Timeout: o.Timeout,
		HTTP:    o.http(),
		Getenv:  func(string) string { return "" },
	})
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	return a, nil
}

// check returns the URL, or an error that names the option.
func (o *Options) check() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("url: the agent's address is missing or not absolute; write one like " +
			"http://localhost:8000/agent")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("url: the agent's address must have only scheme, host and path; what lets the server " +
			"in belongs in headers or credential")
	case !slices.Contains([]string{"", historyAll, historyNew}, o.History):
		return nil, fmt.Errorf("history: %q is not known; write all, or new for an agent that keeps "+
			"the conversation itself", o.History)
	case !slices.Contains([]string{"", cutAsk, cutRetry, cutFail}, o.OnCut):
		return nil, fmt.Errorf("onCut: %q is not known; write ask, retry or fail", o.OnCut)
	case o.Timeout < 0:
		return nil, errors.New("timeout: it cannot be negative")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Effects)) {
		switch o.Effects[name] {
		case holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce:
		default:
			return nil, fmt.Errorf("effects: %q of %s is not known; write pure, idempotent or once", o.Effects[name],
				name)
		}
	}
	return u, nil
}

// http returns what makes the requests; nil for the default.
func (o *Options) http() *http.Client {
	if o.RoundTripper == nil {
		return o.HTTP
	}
	client := http.Client{}
	if o.HTTP != nil {
		client = *o.HTTP
	}
	if client.Transport == nil {
		client.Transport = modelhttp.Transport()
	}
	client.Transport = o.RoundTripper(client.Transport)
	return &client
}

// ModelName returns "remote" and the agent's name.
func (a *Agent) ModelName() (provider, model string) { return "remote", a.name }

// CircuitKey is a short hash of where the agent is asked, and with which headers.
func (a *Agent) CircuitKey() string { return a.client.CircuitKey() }

// Continues says that an answer is several messages, with calls of the agent's own between them.
func (a *Agent) Continues() bool { return true }

// Stream implements [holdfast.Model]: it posts the conversation to the agent, and passes on what
// the agent's run consists of. It reads in the caller's goroutine.
func (a *Agent) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		at := holdfast.IterationFrom(ctx)
		given, ask := answersOf(at.Answer)
		if ask != nil { // a person has answered one question of several
			yield(holdfast.Delta{}, ask)
			return
		}
		if hops(req.Run) >= maxHops {
			yield(holdfast.Delta{}, &holdfast.ModelError{
				Kind: failure.Invalid, Provider: provider, Model: a.name,
				Public: fmt.Sprintf("This agent was reached through %d servers, so agents seem to ask "+
					"each other in a circle.", maxHops),
			})
			return
		}
		in := a.input(req, at, given)
		body, err := a.client.Written(in.body)
		if err != nil {
			yield(holdfast.Delta{}, err)
			return
		}
		// The credential is that of the user whose run it is.
		ctx = holdfast.ContextWithCall(ctx,
			holdfast.ToolCall{Name: a.name, Principal: at.Principal, Thread: req.Thread, Run: req.Run}, nil)
		var s *stream
		last := func(d holdfast.Delta, err error) bool {
			if err != nil && s != nil && s.ask != nil {
				err = s.ask
			}
			return yield(d, err)
		}
		a.client.Stream(ctx, a.path, body, last, func(answer *modelhttp.Answer) modelhttp.Parser {
			s = newStream(answer, a, req, in)
			return s
		})
	}
}
