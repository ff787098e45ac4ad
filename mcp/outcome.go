package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// The meaning of a request's error for the call: that it was never started, that it was
// finished, or nothing, in which case the call's effect decides.

// failure returns what the error of a request means for the call.
func (c *calling) failure(ctx context.Context, r *wire.Request, err error) error {
	server, known := c.peer.o.Name, c.peer.secrets.with(r.Header)
	said := known.redact(reason(err))
	err = known.clean(err)
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		return holdfast.Errorf(codeAnswer, "%s was called and has answered, but its answer cannot be used: %s.",
			c.spec.Name, said).
			Wrap(err)
	case certainlyNot(err):
		if hint := hintOf(err); hint != "" {
			said += ". Only an operator can change that: " + hint
		}
		return holdfast.Errorf(codeRefused, "The MCP server %s has not started the call: %s.", server, said).Wrap(err)
	case errors.Is(err, errBusy):
		return c.unreached("takes one call at a time and is busy", err)
	case !r.Sent():
		return c.unreached("cannot be reached", err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	text := fmt.Sprintf("%s was called, and the MCP server %s has not said what came of it: %s.", c.spec.Name, server,
		said)
	switch c.spec.Effect {
	case holdfast.EffectPure: // nothing is at risk, so it has failed
		return holdfast.Errorf(codeNoAnswer, "%s", text).Wrap(err)
	case holdfast.EffectIdempotent:
		return holdfast.Errorf(codeNoAnswer, "%s It may have taken effect.", text).Wrap(err)
	}
	return holdfast.Errorf(codeUnknown, "%s", text).Wrap(fmt.Errorf("%w: %w", holdfast.ErrOutcomeUnknown, err))
}

// unreached returns the error of a call of which this try has sent nothing. An earlier one may
// have: before this process, or before the server asked for something.
func (c *calling) unreached(why string, err error) error {
	sent := c.call.Again || c.kept.Round > 0 || c.kept.Held != "" || c.kept.Task != nil
	switch {
	case !sent:
		return holdfast.Errorf(codeUnreachable, "The MCP server %s %s; nothing was sent to it. Try again later.",
			c.peer.o.Name, why).
			Wrap(netguard.Unsent{Err: err})
	case c.spec.Effect == holdfast.EffectPure:
		return holdfast.Errorf(codeNoAnswer, "The MCP server %s %s; this try sent nothing to it. Try again later.",
			c.peer.o.Name, why).
			Wrap(err)
	}
	return holdfast.Errorf(codeNoAnswer,
		"The MCP server %s %s; this try sent nothing to it. An earlier one may have taken effect.", c.peer.o.Name, why).
		Wrap(err)
}
