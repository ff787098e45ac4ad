package redisstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// admin is a client that stays connected while everybody else is thrown out.
func admin(t *testing.T, r *redistest.Server) *redis.Conn {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr, Protocol: 2, DisableIdentity: true})
	conn := c.Conn()
	t.Cleanup(func() { _, _ = conn.Close(), c.Close() })
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return conn
}

// run runs commands.
func (o operator) run(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		var args []any
		for _, word := range strings.Fields(c) {
			args = append(args, word)
		}
		if err := o.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
}

type operator struct{ *redis.Conn }

// TestPasswordChanges: while commits are made, the password changes and every connection is
// cut. With the new one in the file the store goes on by itself; with the old one in the URL the
// log says what to do, and a commit that is tried until the password is right again is made once.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "app"} {
		for _, inFile := range []bool{true, false} {
			t.Run(user+map[bool]string{true: " file", false: " URL"}[inFile], func(t *testing.T) {
				t.Parallel()
				r := redistest.Start(t)
				by := operator{admin(t, r)}
				change := func(from, to string) {
					if user == "" {
						by.run(t, "config set requirepass "+to)
					} else {
						by.run(t, "acl setuser app on resetpass >"+to+" ~* &* +@all")
					}
					by.run(t, "client kill type normal skipme yes", "client kill type pubsub skipme yes")
				}
				change("", "one")
				file := filepath.Join(t.TempDir(), "password")
				write := func(password string) {
					if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				write("one")
				said := wait.NewLines("--redis-password-file")
				opts := Options{Prefix: "hf:", Log: said.Logger()}
				url := "redis://" + user + ":one@" + r.Addr
				if inFile {
					opts.PasswordFile, url = file, "redis://"+user+":never-used@"+r.Addr
				}
				open := func() *Store {
					s, err := Open(context.Background(), url, opts)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = s.Close() })
					return s
				}
				s, other := open(), open()
				key := aThread("a")
				advance(t, s, key, nil)
				wake, stop := other.Watch(key)
				defer stop()
				<-wake
				write("two")
				change("one", "two")
				c := follow(t, by, s, key)
				if !inFile {
					redistest.Await(t, func() error { err := s.Commit(t.Context(), c); return wantWrong(err) })
					<-said.Found // the log says what to do
					change("two", "one")
				}
				redistest.Await(t, func() error { return s.Commit(t.Context(), c) })
				if err := s.Commit(t.Context(), c); err != nil {
					t.Errorf("the same commit again: %v", err)
				}
				select {
				case <-wake:
				case <-time.After(wait.Limit):
					t.Error("who waits for the thread was not woken")
				}
				var found []store.Record
				redistest.Await(t, func() (err error) {
					found, err = other.Records(t.Context(), key, store.Cursor{}, 10)
					return err
				})
				if len(found) != 2 {
					t.Errorf("%d records, want 2", len(found))
				}
			})
		}
	}
}

// follow returns a commit that follows the thread's head, which the operator reads: the store
// may not be let in.
func follow(t *testing.T, by operator, s *Store, key store.ThreadKey) *store.Commit {
	t.Helper()
	text, err := by.HGet(t.Context(), s.keys.thread(tag(key)), "h").Result()
	if err != nil {
		t.Fatal(err)
	}
	h, ok := parseHead(text)
	if !ok {
		t.Fatal("the head cannot be read")
	}
	return &store.Commit{
		Key:       key,
		ID:        "next",
		Expect:    h.Position(),
		User:      "alice",
		Fence:     h.Fence,
		UpdatedAt: h.UpdatedAt,
		Records:   [][]byte{[]byte("{}")},
	}
}

// wantWrong returns nil if Redis has refused the password.
func wantWrong(err error) error {
	if connection.WrongPassword(err) {
		return nil
	}
	return fmt.Errorf("not refused: %w", err)
}
