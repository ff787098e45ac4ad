package loop_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/secret"
	"github.com/holdfast-agents/holdfast/store"
)

const theCredential = "very-secret-token"

// logins is a source whose user logs in when it has been asked a few times.
type logins struct{ missing int }

func (l *logins) Credential(_ context.Context, r credential.Request) (secret.Text, error) {
	if l.missing > 0 {
		l.missing--
		return secret.Text{}, &credential.LoginRequired{URL: "https://login.example/" + r.Principal.User}
	}
	return secret.New(theCredential), nil
}

// roundTrips is a server that counts those who are let in.
type roundTrips struct {
	letIn int
	keys  []string
}

func (s *roundTrips) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "Bearer "+theCredential {
		s.letIn++
		s.keys = append(s.keys, holdfast.CallFrom(r.Context()).Key)
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Body:       io.NopCloser(strings.NewReader("found for " + r.Header.Get("Authorization"))),
		Header:     http.Header{},
	}, nil
}

// search is a tool that uses a service for which its user must log in.
func search(source credential.Source, service http.RoundTripper, answers *[]*holdfast.Answer) holdfast.Tool {
	client := &http.Client{
		Transport: &credential.Transport{Source: source, Server: "https://files.example", Name: "files", Base: service},
	}
	return holdfast.NewTool("search", "searches", func(ctx context.Context, _ struct{}) (string, error) {
		*answers = append(*answers, holdfast.CallFrom(ctx).Answer)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://files.example/search", nil)
		if err != nil {
			return "", err
		}
		res, err := client.Do(r)
		if err != nil {
			return "", fmt.Errorf("search: %w", err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return string(b), err
	}, holdfast.WithEffect(holdfast.EffectOnce))
}

// TestLogin: a call whose user has to log in asks for that with the address, and goes on as
// the same call once it is done; until then it asks again. The credential is nowhere, although
// the service repeats it.
func TestLogin(t *testing.T) {
	for name, middleware := range map[string][]holdfast.Middleware{
		"alone":            nil,
		"permission first": {permission.New(permission.Options{Default: permission.Ask})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, service, s, log := &logins{missing: 2}, &roundTrips{}, memstore.New(), &process.Log{}
				var seen []*holdfast.Answer
				e := looptest.Start(t, s, func(c *looptest.Config) {
					c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				}, holdfast.Agent{
					Name: "a", Model: looptest.Say(looptest.Calls("search", `{}`), holdfast.Delta{Text: "done"}),
					Tools: []holdfast.Tool{search(source, service, &seen)}, Middleware: middleware,
				})
				events := looptest.Started(t, e, "t")
				all := events
				if len(middleware) > 0 {
					events = looptest.Posted(t, e,
						looptest.Answers("t", "allow", `{"approved":true}`, looptest.OpenOf(t, events)...))
					all = append(all, events...)
				}
				for n := range 2 {
					open := looptest.OpenOf(t, events)
					if len(open) != 1 || open[0].Reason != thread.ReasonLogin ||
						string(open[0].Metadata) != `{"server":"files","url":"https://login.example/alice"}` ||
						open[0].ToolCallID == "" {
						t.Fatalf("asked %+v", open)
					}
					sound(t, s, "t")
					events = looptest.Posted(t, e,
						looptest.Answers("t", fmt.Sprint("r", n+2), `{"continue":true}`, open...))
					all = append(all, events...)
				}
				looptest.Succeeded(t, events)
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:found for Bearer [secret]",
					"assistant:done")
				if service.letIn != 1 || len(seen) != 3 {
					t.Errorf("let in %d times, called %d times", service.letIn, len(seen))
				}
				for _, a := range seen {
					if a != nil {
						t.Errorf("the tool gets an answer that is not its own: %+v", a)
					}
				}
				checkNowhere(t, s, theCredential, looptest.Show(all), log)
			})
		})
	}
}

// TestLoginElsewhere: a call of an HTTP tool whose user has to log in was certainly not made,
// whatever its effect. It is made once after the login, by another process too, and the model
// may be told of a user who never comes back by a message that declines the question.
func TestLoginElsewhere(t *testing.T) {
	for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &roundTrips{}
				agent := func(missing int) holdfast.Agent {
					tool := looptest.Must(httptool.New(httptool.Options{
						Name: "search", URL: "https://files.example/search", Method: "POST", Effect: effect,
						RoundTripper: func(http.RoundTripper) http.RoundTripper {
							return &credential.Transport{
								Source: &logins{missing: missing},
								Server: "https://files.example",
								Name:   "files",
								Base:   service,
							}
						},
					}))(t)
					return holdfast.Agent{
						Name:  "a",
						Model: looptest.Say(looptest.Calls("search", `{}`), holdfast.Delta{Text: "done"}),
						Tools: []holdfast.Tool{tool},
					}
				}
				mortal := &looptest.Mortal{Store: memstore.New()}
				one := looptest.Start(t, mortal, nil, agent(9))
				open := looptest.OpenOf(t, looptest.Started(t, one, "t"))
				if len(open) != 1 || open[0].Reason != thread.ReasonLogin {
					t.Fatalf("asked %+v", open)
				}
				mortal.Dead.Store(true)
				other := looptest.Start(t, mortal.Store, nil, agent(0))
				looptest.Succeeded(t, looptest.Posted(t, other,
					looptest.Answers("t", "r2", `{"continue":true}`, open...)))
				looptest.WantTexts(t, other, "t", "user:go", "assistant:", "tool:found for Bearer [secret]",
					"assistant:done")
				if service.letIn != 1 {
					t.Errorf("let in %d times", service.letIn)
				}
			})
		})
	}
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name: "a", Model: looptest.Say(looptest.Calls("search", `{}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{search(&logins{missing: 9}, &roundTrips{}, new([]*holdfast.Answer))},
	})
	looptest.OpenOf(t, looptest.Started(t, e, "t"))
	in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "never mind"))
	in.Chat = true
	looptest.Succeeded(t, looptest.Posted(t, e, in))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+thread.TextDeclined, "user:never mind",
		"assistant:done")
}

// TestLoginDeclined: the model is told of a user who does not want to log in.
func TestLoginDeclined(t *testing.T) {
	for name, answer := range map[string]agui.ResumeEntry{
		"cancelled": {Status: agui.ResumeCancelled},
		"no":        {Status: agui.ResumeResolved, Payload: []byte(`{"continue":false}`)},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []*holdfast.Answer
			e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
				Name:  "a",
				Model: looptest.Say(looptest.Calls("search", `{}`), holdfast.Delta{Text: "done"}),
				Tools: []holdfast.Tool{search(&logins{missing: 9}, &roundTrips{}, &seen)},
			})
			in := looptest.RunInput("t", "r2")
			answer.InterruptID = looptest.OpenOf(t, looptest.Started(t, e, "t"))[0].ID
			in.Resume = []agui.ResumeEntry{answer}
			looptest.Succeeded(t, looptest.Posted(t, e, in))
			looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+thread.TextDeclined, "assistant:done")
		})
	}
}

// checkNowhere checks that a text is neither stored nor shown nor logged.
func checkNowhere(t *testing.T, s store.Store, text, stream string, log *process.Log) {
	t.Helper()
	key := looptest.KeyOf("t")
	places := map[string]string{
		"stream": stream,
		"log":    log.String(),
		"head":   string(looptest.Must(s.Head(t.Context(), key))(t).State),
	}
	for _, kind := range store.Kinds() {
		for _, v := range looptest.Must(s.Values(t.Context(), key, kind, "", 0))(t) {
			places[string(kind)] += string(v.Data)
		}
	}
	for _, m := range looptest.Must(s.Messages(t.Context(), key))(t) {
		places["messages"] += string(m.Data)
	}
	for _, r := range looptest.Must(s.Records(t.Context(), key, cursor0, 10000))(t) {
		places["records"] += string(r.Data)
	}
	for place, what := range places {
		if what == "" {
			t.Errorf("nothing was looked at: %s", place)
		}
		if strings.Contains(what, text) {
			t.Errorf("the %s has it", place)
		}
	}
}
