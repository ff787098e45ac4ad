package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/agui"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Clients speak HTTP: their requests go through the server's handler, and they read
// Server-Sent Events. There is no network between them, and no net/http server.

// web returns the server's handler.
func (s *server) web() http.Handler {
	return hfhttp.New(hfhttp.Config{
		Authorize:    func(context.Context, holdfast.Principal, access.Action, string) error { return nil },
		Authenticate: func(*http.Request) (holdfast.Principal, error) { return alice, nil },
		Runs:         runs{s.engine},
		Cancel:       s.engine.Cancel,
		Threads:      s.keeper,
		History:      s.keeper,
		Upkeep:       s.keeper,
		Titles:       upkeep.Titles{Keeper: s.keeper},
		States:       upkeep.States{Keeper: s.keeper},
		Statuses:     upkeep.Mine{Keeper: s.keeper},
		Calls:        calls{s.engine},
		Ready:        s.engine.Ready,
		MaxBody:      1 << 20,
		WriteTimeout: 10 * time.Second,
		Log:          slog.New(slog.DiscardHandler),
		Now:          s.stamp,
	})
}

// runs are the engine's. Side runs have a route of CopilotKit's, which is left out.
type runs struct{ engine *owner.Engine }

func (r runs) Post(
	ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput,
) (*agui.Reply, error) {
	in.Side = strings.HasPrefix(in.ThreadID, aside)
	return r.engine.Post(ctx, who, agent, in)
}

func (r runs) Events(
	ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor, d agui.Dialect,
) (*agui.Reply, error) {
	return r.engine.Events(ctx, who, thread, run, after, d)
}

func (r runs) Attach(ctx context.Context, who holdfast.Principal, thread string, d agui.Dialect) (*agui.Reply, error) {
	return r.engine.Attach(ctx, who, thread, d)
}

// calls takes the results of calls that are finished from outside.
type calls struct{ engine *owner.Engine }

func (c calls) Finish(
	ctx context.Context, who holdfast.Principal, thread, call string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Who, f.Thread, f.Call = who, thread, call
	return c.engine.Finish(ctx, f)
}

func (c calls) Expects(ctx context.Context, token string) error {
	return owner.Expects(ctx, c.engine, token)
}

func (c calls) FinishByToken(
	ctx context.Context, token string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	f := finishing(r)
	f.Token = token
	return c.engine.Finish(ctx, f)
}

// finishing returns a result as the engine takes it.
func finishing(r threads.OutsideResult) owner.OutsideResult {
	if !r.Failed {
		return owner.OutsideResult{Result: r.Result}
	}
	text, _ := json.Marshal(r.Error) // a string can always be encoded
	return owner.OutsideResult{Result: text, Failed: true}
}

// serve has a server answer a request. It returns the code of its error; "ok" if there is none.
func (s *server) serve(r *request, w *response) (code string) {
	w.header = http.Header{}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // which cuts the connection
			code = "cut"
		default:
			panic(p)
		}
	}()
	s.handler.ServeHTTP(w, r.made(w.ctx))
	if w.code < http.StatusBadRequest {
		return "ok"
	}
	if w.cut() != nil {
		return "cut" // and nobody hears why it would have failed
	}
	var body exchange.ErrorBody
	if err := json.Unmarshal(w.buf, &body); err != nil || body.Error.Code == "" {
		return fmt.Sprintf("status %d", w.code)
	}
	return body.Error.Code
}

// ask makes a request whose answer is no stream, and reads the answer into v.
func (s *server) ask(ctx context.Context, r *request, v any) (code string) {
	w := &response{ctx: ctx, dead: s.isDead}
	code = s.serve(r, w)
	if code == "ok" && v != nil && w.code != http.StatusNoContent {
		if err := json.Unmarshal(w.buf, v); err != nil {
			return err.Error()
		}
	}
	return code
}
