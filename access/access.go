// Package access says what a caller may do: the roles that a key or a token grants, the
// actions that they allow, and the rule by which the server decides unless a program has
// one of its own (server.Config.Authorize).
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Role is a set of actions. A caller may have several roles, and may do what any of them
// allows.
type Role string

// The roles.
const (
	// RoleRead: reads the user's own threads.
	RoleRead Role = "read"
	// RoleUser: everything about the user's own threads, except answering the questions
	// of agents that leave those to approvers. It is what a caller without [Rights] has.
	RoleUser Role = "user"
	// RoleApprover: reads the user's own threads and answers their questions, also those
	// that agents leave to approvers.
	RoleApprover Role = "approver"
	// RoleTenantOperator: reads, deletes and cleans up the threads of all users of the tenant,
	// and nothing of other tenants or of the server. It is for a tenant's administrators.
	RoleTenantOperator Role = "tenant_operator"
	// RoleServerOperator: what a tenant's operator may do in the caller's tenant, and what
	// concerns the whole server: its figures and settings, tools by hand, and a copy of the
	// store, which holds every tenant. It is for those who run the server.
	RoleServerOperator Role = "server_operator"
	// RoleService: gives the calls of all users of the tenant that are finished from outside
	// their results. It is for the services that do the work.
	RoleService Role = "service"
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleRead, RoleUser, RoleApprover, RoleTenantOperator, RoleServerOperator, RoleService}
}

// Action is what a caller asks for. The list below is complete: the server asks about
// nothing else.
type Action string

// The actions.
const (
	// Read: read threads, runs, checkpoints, streams, and the list of agents. With an
	// agent: be shown that agent.
	Read Action = "read"
	// Run: start a run of an agent, or continue one that stopped.
	Run Action = "run"
	// Answer: answer an agent's open questions.
	Answer Action = "answer"
	// Approve: answer the open questions of an agent that leaves them to approvers
	// (approvals: approver).
	Approve Action = "approve"
	// Cancel: end a run.
	Cancel Action = "cancel"
	// Change: give a thread a title, hide it, take a checkpoint, fork, rewind.
	Change Action = "change"
	// Delete: delete or prune a thread, or clean up one's own threads.
	Delete Action = "delete"
	// OperateTenant: read, delete and clean up threads of all users of the tenant.
	OperateTenant Action = "operate_tenant"
	// OperateServer: see the server's figures and settings, call tools by hand, copy the store.
	OperateServer Action = "operate_server"
	// Finish: give a call of any user of the tenant that is finished from outside its result.
	Finish Action = "finish"
)

// allowed are the actions of each role.
var allowed = map[Role][]Action{
	RoleRead:           {Read},
	RoleUser:           {Read, Run, Answer, Cancel, Change, Delete},
	RoleApprover:       {Read, Answer, Approve},
	RoleTenantOperator: {Delete, OperateTenant},
	RoleServerOperator: {Delete, OperateTenant, OperateServer},
	RoleService:        {Finish},
}

// Rights are what a key or a token grants. They are read-only.
type Rights struct {
	// Roles are the caller's roles. Without any, nothing is allowed.
	Roles []Role
	// Agents are the names of the agents that the caller may be shown, run and answer.
	// nil means all; an empty list none.
	Agents []string
	// Expires is when the caller is no longer let in, and open streams end. Zero means
	// never.
	Expires time.Time
	// Revoked, if set, is done when the caller is no longer let in. Open streams end
	// with it.
	Revoked context.Context
}

// Has reports whether a role is granted. nil has [RoleUser].
func (r *Rights) Has(role Role) bool {
	if r == nil {
		return role == RoleUser
	}
	return slices.Contains(r.Roles, role)
}

// Allow is the rule: it reports whether a role allows the action, and whether the agent
// (empty: no particular one) is among those granted. nil may do what [RoleUser] allows,
// with all agents.
func (r *Rights) Allow(action Action, agent string) bool {
	if r != nil && r.Agents != nil && agent != "" && !slices.Contains(r.Agents, agent) {
		return false
	}
	for _, role := range Roles() {
		if r.Has(role) && slices.Contains(allowed[role], action) {
			return true
		}
	}
	return false
}

// FormerOperator is a role of earlier builds that stood for both operators. It is none of
// [Roles], and allows nothing: package apikey says what it means in a list of keys, and package
// jwtauth what it means in a token.
const FormerOperator Role = "operator"

// ParseRole returns the role of that name. The error lists the names.
func ParseRole(name string) (Role, error) {
	role := Role(name)
	if role == FormerOperator {
		return "", fmt.Errorf("there are two kinds of %s: write %s for all threads of the tenant, or %s for "+
			"those who run the server", name, RoleTenantOperator, RoleServerOperator)
	}
	if !slices.Contains(Roles(), role) {
		names := make([]string, len(Roles()))
		for i, r := range Roles() {
			names[i] = string(r)
		}
		return "", fmt.Errorf("there is no such role: use %s", strings.Join(names, ", "))
	}
	return role, nil
}
