package server

// The server about itself: its figures, its settings, its tools by hand, and its end; and the
// threads of a tenant's other users. The decision who may see and do that is made here: operators
// with keys, and without keys those at this machine who show its token.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/figures"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// console is the server about itself.
type console struct {
	s       *Server
	figures *figures.Ring
	started time.Time
	newID   func(prefix string) string
}

// Operates implements [hfhttp.Console].
func (c *console) Operates(r *http.Request, who holdfast.Principal, action access.Action, attempt string) error {
	err := c.operates(r, who, action)
	if err != nil && attempt != "" {
		c.s.audited.audit.note(r.Context(), caller(who), attempt, "", err)
	}
	return err
}

// operates returns why the sender of the request may not do what is for operators of the tenant or
// of the server, as the action says. Without keys they are the same.
func (c *console) operates(r *http.Request, who holdfast.Principal, action access.Action) error {
	if c.s.cfg.Authenticate == nil {
		if !c.atThisMachine(r) || !operator.Shows(r, c.s.operators.token) {
			return holdfast.Errorf(codes.NotFound, "Only operators of this server may do this.").
				WithHint("Without API keys they open the address with #token= that the server printed when it " +
					"started, or show that token as a bearer, from the server's own machine and not through a proxy. " +
					"With API keys it is the role server_operator and, for threads, also tenant_operator.")
		}
		return c.s.cfg.Authorize(r.Context(), asOperator(who), action, "")
	}
	return mustOperate(r.Context(), c.s.cfg.Authorize, who, action)
}

// asOperator returns the caller of a server without keys with what it takes to operate it.
func asOperator(who holdfast.Principal) holdfast.Principal {
	if who.Rights == nil {
		who.Rights = &access.Rights{Roles: []access.Role{access.RoleUser, access.RoleServerOperator}}
	}
	return who
}

// atThisMachine reports whether the server is for its own machine and the request comes from
// there. Requests that a proxy has forwarded seem to, too.
func (c *console) atThisMachine(r *http.Request) bool {
	if !c.s.cfg.forOperatorHere() {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return local != nil && netguard.IsLoopback(local.String()) && netguard.IsLoopback(r.RemoteAddr)
}

// overviewTimeout is how long the store may take to say who shares it.
const overviewTimeout = 2 * time.Second

// Overview implements [hfhttp.Console].
func (c *console) Overview(ctx context.Context) hfhttp.Overview {
	cfg := c.s.cfg
	o := hfhttp.Overview{
		Process:    c.Process(),
		Version:    cfg.Version,
		StartedAt:  c.started,
		Now:        c.s.now().UTC(),
		Store:      cfg.storeText(),
		Durability: string(c.s.level),
		Demo:       c.Scripted(),
		Processes:  []string{c.Process()},
		Index:      hfhttp.IndexProgress(c.s.keeper.Index()),
		IndexLagMs: c.s.keeper.IndexLag().Milliseconds(),
		Figures:    c.figures.Figures(),
	}
	if keeper, shared := c.s.store.(store.FormatKeeper); shared {
		ctx, cancel := context.WithTimeout(ctx, overviewTimeout)
		defer cancel()
		// A store that does not answer is told of elsewhere.
		if known, err := keeper.Formats(ctx); err == nil {
			known.Reads[c.Process()] = 0
			o.Processes = slices.Sorted(maps.Keys(known.Reads))
		}
	}
	return o
}

// Settings implements [hfhttp.Console].
func (c *console) Settings(ctx context.Context, who holdfast.Principal) []hfhttp.Setting {
	if c.s.cfg.Settings == nil {
		return nil
	}
	c.s.audited.audit.note(ctx, caller(who), "read_settings", "", nil)
	list := []hfhttp.Setting{}
	for _, setting := range slices.Concat(c.s.cfg.Settings, fileSettings(&c.s.served.Load().Config)) {
		list = append(list, hfhttp.Setting(setting))
	}
	return list
}

// CallTool implements [hfhttp.Console].
func (c *console) CallTool(
	ctx context.Context, who holdfast.Principal, by hfhttp.ToolByHand,
) (*hfhttp.ToolOutcome, error) {
	if c.s.cfg.Authenticate == nil {
		who = asOperator(who)
	}
	if err := c.s.cfg.Authorize(ctx, who, access.OperateServer, by.Agent); err != nil {
		c.s.audited.audit.note(ctx, caller(who), "call_tool", "", err, slog.String("agent", by.Agent),
			slog.String("tool", by.Tool))
		return nil, err
	}
	limits := c.s.served.Load().limits(by.Agent)
	id := c.newID("call")
	call := holdfast.ToolCall{
		ID:        id,
		Name:      by.Tool,
		Arguments: by.Arguments,
		Key:       cmp.Or(by.IdempotencyKey, strings.ReplaceAll(id, "_", "")),
		Principal: holdfast.Principal{Tenant: who.Tenant, User: who.User},
	}
	began := clock.Now()
	result, started, err := owner.CallByHand(ctx, c.s.engine,
		owner.ByHand{Agent: by.Agent, Call: call, Around: []holdfast.Middleware{
			middleware.ToolTimeout(limits.ToolTimeout, &c.s.tools), middleware.ToolResultLimit(limits.MaxToolResult),
		}})
	refused := err
	if started {
		refused = nil
	}
	c.s.audited.audit.note(ctx, caller(who), "call_tool", "", refused, slog.String("agent", by.Agent),
		slog.String("tool", by.Tool), slog.String("key", call.Key))
	if !started {
		return nil, err
	}
	return outcomeOf(&call, result, err, began.Ran()), nil
}

// outcomeOf says what came of a call by hand. Operators read the whole error of a tool.
func outcomeOf(call *holdfast.ToolCall, result holdfast.ToolResult, err error, took time.Duration) *hfhttp.ToolOutcome {
	o := &hfhttp.ToolOutcome{IdempotencyKey: call.Key, DurationMs: took.Milliseconds()}
	var ask *holdfast.Interrupt
	var public *holdfast.Error
	switch {
	case errors.As(err, &ask):
		o.Error = "The tool asks a person, which needs a thread: " + ask.Message
	case errors.As(err, &public) && public.Err == nil && public.Message != "":
		o.Error = public.Message // as the model reads it, without the code
	case err != nil:
		o.Error = cmp.Or(err.Error(), "The tool has failed.")
	case result.Failed:
		o.Error = cmp.Or(result.Text, "The tool has failed.")
	default:
		o.Result = agui.FromDomain(holdfast.Message{Role: holdfast.RoleTool, Text: result.Text,
			Parts: result.Parts}).Content
	}
	return o
}

// ReadAs implements [hfhttp.Others].
func (c *console) ReadAs(r *http.Request, who holdfast.Principal, user, thread string) (holdfast.Principal, error) {
	err := c.operates(r, who, access.OperateTenant)
	c.s.audited.audit.note(r.Context(), caller(who), "read", thread, err, slog.String("user", user))
	if err != nil {
		return holdfast.Principal{}, err
	}
	rights := access.Rights{Roles: []access.Role{access.RoleRead}}
	if own := who.Rights; own != nil { // the streams end with the operator's key
		rights.Agents, rights.Expires, rights.Revoked = own.Agents, own.Expires, own.Revoked
	}
	return holdfast.Principal{Tenant: who.Tenant, User: user, Rights: &rights}, nil
}

// ThreadsOfAll implements [hfhttp.Others].
func (c *console) ThreadsOfAll(r *http.Request, who holdfast.Principal, page hfhttp.ThreadPage) (*threads.List, error) {
	err := c.operates(r, who, access.OperateTenant)
	c.s.audited.audit.note(r.Context(), caller(who), "list", "", err, slog.String("user", "*"))
	if err != nil {
		return nil, err
	}
	all := upkeep.Everybody{Keeper: c.s.keeper}
	if page.Status != "" {
		return all.ThreadsIn(r.Context(), who.Tenant, page.Status, page.Before, page.Limit)
	}
	list, err := all.Threads(r.Context(), who.Tenant, page.Before, page.Limit)
	return &threads.List{Threads: list}, err
}

// Scripted implements [hfhttp.Demo].
func (c *console) Scripted() bool { return isScripted(c.s.served.Load().Agents[0]) }

// CanKill implements [hfhttp.Demo].
func (c *console) CanKill(r *http.Request) bool {
	return c.s.cfg.Kill != nil && c.atThisMachine(r) && operator.Shows(r, c.s.operators.token) &&
		!slices.ContainsFunc(c.s.served.Load().Agents, func(a holdfast.Agent) bool { return !isScripted(a) })
}

// Kill implements [hfhttp.Demo].
func (c *console) Kill() {
	c.s.cfg.Log.Warn("this process is killed at the request of its page", "process", c.Process())
	c.s.cfg.Kill()
}

// Process implements [hfhttp.Demo].
func (c *console) Process() string { return owner.Process(c.s.engine) }
