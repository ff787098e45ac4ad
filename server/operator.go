package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/store"
)

// The server's operators: callers with the role, and readers of its store's directory.

// operators knows them. Besides callers with the role it lets those in who have what the server
// has left in its store's directory while it listens; nobody, if the store has none.
type operators struct {
	authenticate func(*http.Request) (holdfast.Principal, error) // nil on a server without keys
	authorize    authorizer
	dir          string // of the store; "" if there is none
	host         string // by which the server may be addressed
	token        string // what they show on a server without keys, and from the store's directory
	log          *slog.Logger
	contact      atomic.Pointer[operator.Contact]
}

// thisMachine is in the log who used what the server has left in its store's directory.
const thisMachine = "this machine"

// of returns the operator who sent a request. It returns "" for everybody else on a server
// without keys.
func (o *operators) of(r *http.Request) (string, error) {
	if c := o.contact.Load(); c != nil && c.Allows(r) {
		return thisMachine, nil
	}
	if o.authenticate == nil {
		return "", nil
	}
	who, err := o.authenticate(r)
	if err != nil {
		return "", err
	}
	return caller(who), mustOperate(r.Context(), o.authorize, who, access.OperateServer)
}

// announce leaves a contact in the store's directory. Without it, the server only cannot
// be asked for a backup.
func (o *operators) announce(addr string) {
	if o.dir == "" {
		return
	}
	c, err := operator.NewContact(addr, o.host, o.token)
	if err == nil {
		err = c.Write(o.dir)
	}
	if err != nil {
		o.log.Warn("holdfast backup cannot reach this server", "error", err)
		return
	}
	o.contact.Store(&c)
}

// withdraw takes the contact back.
func (o *operators) withdraw() error {
	if o.contact.Swap(nil) == nil {
		return nil
	}
	return operator.Remove(o.dir)
}

// backupOf returns how a store is copied; nil if it cannot be.
func backupOf(s store.Store) func(ctx context.Context, dir string) error {
	if b, ok := s.(store.Backuper); ok {
		return b.Backup
	}
	return nil
}

// directoryOf is where an embedded store is; "" for any other.
func directoryOf(s store.Store) string {
	if d, ok := s.(interface{ Dir() string }); ok {
		return d.Dir()
	}
	return ""
}
