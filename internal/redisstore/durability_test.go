package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// How durable Redis is, asked of real servers with settings of their own.

// inspect inspects the Redis at the URL and returns the notes as one text.
func inspect(t *testing.T, url string) (store.Durability, string) {
	t.Helper()
	d, err := openAt(t, url, "hf:").Durability(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d, strings.Join(d.Notes, "\n")
}

// command sends a command to the server.
func command(t *testing.T, r *redistest.Server, args ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr})
	defer c.Close()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// TestInspectPersistence: the level follows from how Redis is set up at the moment; a
// note says what a higher one would take.
func TestInspectPersistence(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	for _, c := range []struct {
		setting, value string
		level          store.Level
		note           string // "" for none
	}{
		{"save", "", store.LevelProcess, "ALL THREADS ARE LOST"},
		{"save", "3600 1", store.LevelProcess, "EVERYTHING SINCE ITS LAST SNAPSHOT"},
		{"appendonly", "yes", store.LevelProcess, "may lose the last second"},
		{"appendfsync", "no", store.LevelProcess, "operating system"},
		{"appendfsync", "always", store.LevelMachine, ""},
		{"no-appendfsync-on-rewrite", "yes", store.LevelProcess, "no-appendfsync-on-rewrite"},
	} {
		command(t, r, "CONFIG", "SET", c.setting, c.value)
		d, notes := inspect(t, r.URL())
		if d.Level != c.level || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s %q: level %q, want %q, a note with %q; notes:\n%s", c.setting, c.value, d.Level, c.level,
				c.note, notes)
		}
		if d.Evicts || d.Policy != "noeviction" {
			t.Errorf("%s %q: evicts %t by %q", c.setting, c.value, d.Evicts, d.Policy)
		}
	}
}

// TestInspectMemory: a Redis that evicts is detected, and so is a full one.
func TestInspectMemory(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		command(t, r, "CONFIG", "SET", "maxmemory-policy", policy)
		if d, _ := inspect(t, r.URL()); !d.Evicts || d.Policy != policy {
			t.Errorf("%s: evicts %t by %q", policy, d.Evicts, d.Policy)
		}
	}
	command(t, r, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	if _, notes := inspect(t, r.URL()); strings.Contains(notes, "almost full") {
		t.Errorf("there is no limit:\n%s", notes)
	}
	command(t, r, "CONFIG", "SET", "maxmemory", "100000")
	if _, notes := inspect(t, r.URL()); !strings.Contains(notes, "almost full") ||
		!strings.Contains(notes, "of 100000 bytes") {
		t.Errorf("it is full:\n%s", notes)
	}
}

// TestInspectRefused: a user without the right to CONFIG gets from INFO what it has;
// what remains unknown becomes a note, and never a higher level.
func TestInspectRefused(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "allkeys-lfu")
	command(t, r, "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-config")
	d, notes := inspect(t, "redis://app:pw@"+r.Addr)
	if d.Level != store.LevelProcess || !d.Evicts || d.Policy != "allkeys-lfu" {
		t.Errorf("without CONFIG: %+v", d)
	}
	for _, want := range []string{"does not show all of its settings: NOPERM", "has an append-only file, but"} {
		if !strings.Contains(notes, want) {
			t.Errorf("without CONFIG no note has %q:\n%s", want, notes)
		}
	}
	unknown := []string{
		"does not show all",
		"whether Redis keeps its data on disk could not be looked at",
		"make sure that maxmemory-policy is noeviction",
	}
	command(t, r, "ACL", "SETUSER", "app", "-info")
	d, notes = inspect(t, "redis://app:pw@"+r.Addr)
	for _, want := range unknown {
		if d.Level != store.LevelProcess || d.Evicts || !strings.Contains(notes, want) {
			t.Errorf("without CONFIG and INFO %+v, want a note with %q", d, want)
		}
	}
	// Miniredis does not know the commands, like some managed servers.
	d, notes = inspect(t, "redis://"+miniredis.RunT(t).Addr())
	for _, want := range unknown {
		if d.Level != store.LevelProcess || d.Evicts || !strings.Contains(notes, want) {
			t.Errorf("without the commands %+v, want a note with %q", d, want)
		}
	}
}

// TestInspectReplicas: master and replica each have a note on what replication means.
func TestInspectReplicas(t *testing.T) {
	t.Parallel()
	// By default a master waits five seconds for more replicas before it sends its data.
	master, replica := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr, ":")
	command(t, replica, "REPLICAOF", host, port)
	// When a replica has acknowledged a write, it is connected.
	c := redis.NewClient(&redis.Options{Addr: master.Addr, ReadTimeout: 40 * time.Second})
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Wait(t.Context(), 1, 30*time.Second).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas, %v", n, err)
	}
	if _, notes := inspect(t, master.URL()); !strings.Contains(notes, "(1 connected)") ||
		!strings.Contains(notes, "may lose what was acknowledged") {
		t.Errorf("the master's notes:\n%s", notes)
	}
	if _, notes := inspect(t, replica.URL()); !strings.Contains(notes, "is a replica") {
		t.Errorf("the replica's notes:\n%s", notes)
	}
}

// testInspectCluster is a part of TestOnCluster.
func testInspectCluster(t *testing.T, r *redistest.Server) {
	command(t, r, "CONFIG", "SET", "appendonly", "yes")
	command(t, r, "CONFIG", "SET", "appendfsync", "always")
	if d, notes := inspect(t, "redis+cluster://"+r.Addr); d.Level != store.LevelMachine || d.Evicts || notes != "" {
		t.Errorf("%+v", d)
	}
	command(t, r, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	if d, _ := inspect(t, "redis+cluster://"+r.Addr); !d.Evicts || d.Policy != "allkeys-random" {
		t.Errorf("%+v", d)
	}
}

// TestInspectUnreachable: no answer is an error, not a note.
func TestInspectUnreachable(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := openAt(t, r.URL()+"?max_retries=-1", "hf:")
	r.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if d, err := s.Durability(ctx); err == nil {
		t.Errorf("%+v", d)
	}
}

// TestCanCommit: a Redis that is full says so, and that it has room again.
func TestCanCommit(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := openAt(t, r.URL(), "hf:")
	for memory, full := range map[string]bool{"0": false, "1gb": false, "1": true} {
		command(t, r, "CONFIG", "SET", "maxmemory", memory)
		if err := s.CanCommit(t.Context()); (err != nil) != full {
			t.Errorf("maxmemory %s: %v", memory, err)
		}
		err := s.Commit(t.Context(), &store.Commit{
			Key:    aThread("t" + memory),
			ID:     "c",
			Expect: store.Position{Next: 1},
			Fence:  store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		})
		if (err != nil) != full {
			t.Errorf("maxmemory %s: a commit: %v", memory, err)
		}
	}
}
