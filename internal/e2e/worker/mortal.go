package main

// An agent whose tools do their work elsewhere: at an HTTP service, at an MCP server, as jobs
// that they keep the handle of, or with somebody who sends the result. Processes die in the
// middle of their calls; TestDeaths has what comes of that.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/webhook"
)

// effects are what tools declare, by the part of their name that is about it. liar is
// idempotent by its own word alone.
var effects = map[string]struct {
	effect  holdfast.Effect
	inDoubt holdfast.Doubt
}{
	"pure":       {effect: holdfast.EffectPure},
	"idempotent": {effect: holdfast.EffectIdempotent},
	"liar":       {effect: holdfast.EffectIdempotent},
	"once":       {effect: holdfast.EffectOnce},
	"ask":        {effect: holdfast.EffectOnce, inDoubt: holdfast.DoubtAsk},
	"query":      {effect: holdfast.EffectQuery},
}

// mortal is the agent. A call that may be tried again is, so that it outlives the other side's
// restart.
func (w *worker) mortal(service, mcpOptions string) (_ holdfast.Agent, end func(), err error) {
	agent := holdfast.Agent{Name: "mortal", Model: holdfast.ModelFunc(w.model), Middleware: []holdfast.Middleware{
		middleware.Retry(middleware.RetryOptions{
			Attempts:   20,
			Backoff:    middleware.Duration(50 * time.Millisecond),
			MaxBackoff: middleware.Duration(time.Second),
		}),
		{Name: "test.sending", Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				w.at(call.Thread, "unsent-"+call.Name, 0)
				return next(ctx, tool, call)
			}
		}},
	}}
	if mcpOptions != "" {
		set, end, err := mortalRemote(mcpOptions)
		agent.Toolsets = []holdfast.Toolset{set}
		return agent, end, err
	}
	deliver, err := webhook.New(webhook.Options{URL: service + "/deliver"})
	if err != nil {
		return agent, nil, err
	}
	agent.Tools = append(agent.Tools, contract.New[toolArgs]("outside", "A contract of the tests.", holdfast.Outside{
		ExpiresAfter: time.Hour,
		Deliver: func(ctx context.Context, call holdfast.OutsideCall) error {
			w.at(call.Call.Thread, "unsent-delivery", 0)
			return deliver(ctx, call)
		},
	}))
	for name := range effects {
		tool, err := serviceTool(service, name)
		if err != nil {
			return agent, nil, err
		}
		agent.Tools = append(agent.Tools, tool, jobTool(service, "job_"+name))
	}
	return agent, func() {}, nil
}

// serviceTool is a tool that is an HTTP service.
func serviceTool(service, name string) (holdfast.Tool, error) {
	e := effects[name]
	o := httptool.Options{
		Name:        name,
		Description: "A service of the tests.",
		URL:         service + "/deeds/" + name + "?n={n}",
		Effect:      e.effect,
		InDoubt:     e.inDoubt,
		Allow:       []string{"127.0.0.1"},
	}
	if e.effect != holdfast.EffectPure {
		o.Method, o.Body = http.MethodPost, json.RawMessage(`{"n":"{n}"}`)
	}
	if e.effect == holdfast.EffectQuery {
		o.LookUp = service + "/lookup?key={call.key}"
	}
	return httptool.New(o)
}

// jobTool is a tool in Go that begins a job at the service, keeps its handle and waits.
func jobTool(service, name string) holdfast.Tool {
	e := effects[strings.TrimPrefix(name, "job_")]
	run := func(ctx context.Context, _ toolArgs) (string, error) {
		call := holdfast.CallFrom(ctx)
		var job string
		if call.Kept == nil {
			var err error
			if job, err = request(ctx, http.MethodPost, service+"/jobs/"+name, call.Key); err != nil {
				return "", err
			}
			handle, err := json.Marshal(job)
			if err == nil {
				err = holdfast.Keep(ctx, handle)
			}
			if err != nil {
				return "", err
			}
		} else if err := json.Unmarshal(call.Kept, &job); err != nil {
			return "", err
		}
		for {
			text, err := request(ctx, http.MethodGet, service+path.Join("/jobs", name, job), call.Key)
			if err == nil || ctx.Err() != nil {
				return text, err
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	options := []holdfast.ToolOption{holdfast.WithEffect(e.effect), holdfast.WithInDoubt(e.inDoubt)}
	if e.effect == holdfast.EffectQuery {
		options = append(options, holdfast.WithQuery(func(ctx context.Context,
			call holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
			for {
				text, err := request(ctx, http.MethodGet, service+"/lookup?key="+call.Key, call.Key)
				switch {
				case errors.Is(err, errNotFound):
					return holdfast.ToolResult{}, holdfast.FateNotDone, nil
				case err == nil:
					return holdfast.ToolResult{Text: text}, holdfast.FateDone, nil
				case ctx.Err() != nil:
					return holdfast.ToolResult{}, holdfast.FateUnknown, err
				}
				time.Sleep(20 * time.Millisecond)
			}
		}))
	}
	return holdfast.NewTool(name, "A job of the tests.", run, options...)
}

var errNotFound = errors.New("it is not known")

// request asks the service something, and says if it cannot be known what became of that.
func request(ctx context.Context, method, url, key string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Key", key)
	var sent atomic.Bool
	res, err := http.DefaultClient.Do(r.WithContext(tracked(ctx, &sent)))
	switch {
	case err != nil && !sent.Load():
		return "", fmt.Errorf("nothing was sent: %w", err)
	case err != nil:
		return "", fmt.Errorf("%w: %w", holdfast.ErrOutcomeUnknown, err)
	}
	defer res.Body.Close()
	return answerOf(res)
}

// mortalRemote are the tools of an MCP server, whose options are JSON. It does not wait for the
// server.
func mortalRemote(options string) (holdfast.Toolset, func(), error) {
	s, err := openServer(options)
	if err != nil {
		return nil, nil, fmt.Errorf("--mortal-mcp: %w", err)
	}
	return &remoteTools{Server: s}, s.Close, nil
}

// remoteTools are the tools of a server, of which some have a person asked: that is an option
// for all tools of a server, and these are to be called at once.
type remoteTools struct {
	*mcp.Server
	last atomic.Pointer[remoteList]
}

type remoteList struct{ theirs, ours []holdfast.Tool }

// Tools implements [holdfast.Toolset].
func (r *remoteTools) Tools() []holdfast.Tool {
	theirs := r.Server.Tools()
	if l := r.last.Load(); l != nil && len(l.theirs) == len(theirs) &&
		(len(theirs) == 0 || &l.theirs[0] == &theirs[0]) {
		return l.ours
	}
	l := &remoteList{theirs: theirs}
	for _, t := range theirs {
		if strings.HasSuffix(t.Spec().Name, "ask") {
			t = asking{t}
		}
		l.ours = append(l.ours, t)
	}
	r.last.Store(l)
	return l.ours
}

// asking is a tool that has a person asked.
type asking struct{ holdfast.Tool }

// Spec implements [holdfast.Tool].
func (t asking) Spec() holdfast.ToolSpec {
	s := t.Tool.Spec()
	s.InDoubt = holdfast.DoubtAsk
	return s
}
