package server_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// TestBackupWithOperatorToken: the configured token is for a server of this machine alone, also
// where a store is copied.
func TestBackupWithOperatorToken(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*server.Config)
		copies bool
	}{
		"here":         {func(*server.Config) {}, true},
		"behind proxy": {func(c *server.Config) { c.BehindProxy = true }, false},
		"anonymous":    {func(c *server.Config) { c.AllowAnonymous = true }, false},
	} {
		c := config(t)
		c.Store, c.Addr, c.OperatorToken = "file:"+t.TempDir(), "127.0.0.1:0", localToken
		tt.change(&c)
		s := must(server.New(c))(t)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		code, body := call(t, localToken, "POST", "http://"+s.Addr()+"/maintenance/backup",
			`{"dir":"`+filepath.Join(t.TempDir(), "copy")+`"}`)
		if copied := code == http.StatusOK; copied != tt.copies {
			t.Errorf("%s: %d %s", name, code, body)
		}
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
