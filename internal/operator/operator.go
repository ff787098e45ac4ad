// Package operator is how a command asks the server that has an embedded store open. The
// server leaves its address and a token in the store's directory; anyone who can read that
// file can read the store as well, so the token lets them ask for everything that is reserved
// for operators.
package operator

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/headers"
)

// File is the name of the file in the store's directory.
const File = "SERVER"

// Contact is what the file says.
type Contact struct {
	// URL is the server's, as this machine reaches it.
	URL string `json:"url"`
	// Host is a name that the server answers to, if it may not answer to that of the URL.
	Host string `json:"host,omitempty"`
	// Token is what an operator's request has to show.
	Token string `json:"token"`
}

// Token returns what operators of the server that has the store in a directory have to show: what
// they had to show to a server that was killed there, so that its page goes on working, and
// otherwise a new one. Without a directory it is new with each start.
func Token(dir string) string {
	if dir != "" {
		if c, err := Read(dir); err == nil && len(c.Token) >= MinToken {
			return c.Token
		}
	}
	return rand.Text()
}

// NewContact returns the contact of the server that listens on addr. It answers to the name;
// empty means any.
func NewContact(addr, name, token string) (Contact, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return Contact{}, fmt.Errorf("the server's address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return Contact{URL: "http://" + net.JoinHostPort(host, port), Host: name, Token: token}, nil
}

// Write leaves the contact in a directory. Only its owner can read it.
func (c Contact) Write(dir string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "."+File)
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, File))
}

// Remove takes the contact out of the directory.
func Remove(dir string) error { return os.Remove(filepath.Join(dir, File)) }

// Read reads the contact of the server that has the store in a directory open.
func Read(dir string) (Contact, error) {
	var c Contact
	text, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read %s: %w", File, err)
	}
	return c, nil
}

// The bounds of a token, in bytes.
const (
	MinToken = 16
	MaxToken = 512
)

// Allows reports whether a request shows the token.
func (c Contact) Allows(r *http.Request) bool { return Shows(r, c.Token) }

// Shows reports whether a request shows a token. Nothing shows an empty one.
func Shows(r *http.Request, token string) bool {
	shown, ok := headers.BearerToken(r, MaxToken)
	return ok && token != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1
}

// direct reaches the server without a proxy, which would be shown the token.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Backup asks the server for a copy of its store in a new directory, which must be an
// absolute path on the server's machine. The error says what the server said.
func (c Contact) Backup(ctx context.Context, dir string) error {
	body, err := json.Marshal(map[string]string{"dir": dir})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/maintenance/backup", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Host = c.Host // empty means that of the URL
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	var answer struct {
		Error struct{ Message, Hint string }
	}
	if err != nil || json.Unmarshal(text, &answer) != nil || answer.Error.Message == "" {
		return fmt.Errorf("the server at %s answered %s", c.URL, res.Status)
	}
	return errors.New(strings.TrimSpace(answer.Error.Message + " " + answer.Error.Hint))
}
