package server

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/store"
)

// operators are let in with what the server has left in its store's directory, while it
// listens. Nobody is, if the store has none.
type operators struct {
	contact atomic.Pointer[operator.Contact]
}

func (o *operators) allow(r *http.Request) bool {
	c := o.contact.Load()
	return c != nil && c.Allows(r)
}

// backup returns how the store is copied; nil if it cannot be.
func (s *Server) backup() func(ctx context.Context, dir string) error {
	if b, ok := s.store.(store.Backuper); ok {
		return b.Backup
	}
	return nil
}

// directory is where the embedded store is; "" if there is none.
func (s *Server) directory() string {
	if d, ok := s.store.(interface{ Dir() string }); ok {
		return d.Dir()
	}
	return ""
}

// announce leaves a contact in the store's directory. Without it, the server only cannot
// be asked for a backup.
func (s *Server) announce() {
	dir := s.directory()
	if dir == "" {
		return
	}
	c, err := operator.NewContact(s.Addr())
	if err == nil {
		err = c.Write(dir)
	}
	if err != nil {
		s.cfg.Log.Warn("holdfast backup cannot reach this server", "error", err)
		return
	}
	s.operators.contact.Store(&c)
}

// withdraw takes the contact back.
func (s *Server) withdraw() error {
	if s.operators.contact.Swap(nil) == nil {
		return nil
	}
	return operator.Remove(s.directory())
}
