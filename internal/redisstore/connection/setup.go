package connection

// How a Redis is set up, and what that means for what is written to it. Each finding is a note
// for the operator that says what is at risk and how to change it.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// Weakest returns what holds for all nodes, which are given by their addresses.
func Weakest(nodes map[string]store.Durability) store.Durability {
	all := store.Durability{Level: store.LevelMachine}
	saidBy := map[string][]string{}
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		d := nodes[addr]
		if d.Level != store.LevelMachine {
			all.Level = d.Level
		}
		if all.Policy == "" || d.Evicts && !all.Evicts {
			all.Policy = d.Policy
		}
		all.Evicts = all.Evicts || d.Evicts
		for _, note := range d.Notes {
			if saidBy[note] == nil {
				all.Notes = append(all.Notes, note)
			}
			saidBy[note] = append(saidBy[note], addr)
		}
	}
	if len(nodes) > 1 {
		for i, note := range all.Notes {
			all.Notes[i] = fmt.Sprintf("%s (%s)", note, strings.Join(saidBy[note], ", "))
		}
	}
	return all
}

// Inspect looks at one server: need is how many replicas must have a write.
func Inspect(ctx context.Context, c redis.Cmdable, need int) (store.Durability, error) {
	f, err := look(ctx, c)
	if err != nil {
		return store.Durability{}, err
	}
	f.need = need
	return f.judge()
}

// CanCommit asks one server, and returns why it refuses commits, with an error that wraps
// [store.ErrRefused]: need is how many replicas must have a write.
func CanCommit(ctx context.Context, c redis.Cmdable, need int) error {
	f, err := told(ctx, c)
	if err != nil {
		return err
	}
	if f.info["rdb_last_bgsave_status"] == "err" { // only then it matters what is set up
		if err := f.ask(ctx, c, "save", "stop-writes-on-bgsave-error"); err != nil {
			return err
		}
	}
	if err := f.refusesWrites(); err != nil {
		return Refusing(err)
	}
	if has := number(f.info["connected_slaves"]); f.info["role"] == "master" && has < int64(need) {
		return Refusing(fmt.Errorf("only %d of %d replicas are connected to Redis (durability "+
			"failover); start the others", has, need))
	}
	return nil
}

// facts are what one Redis says about itself; what it does not say is missing.
type facts struct {
	info    map[string]string // the fields of INFO
	config  map[string]string // settings
	refusal error             // the first question that Redis refused
	need    int               // how many replicas must have a write
}

// look asks Redis. INFO without sections returns all that is needed; Redis 6 accepts
// neither several sections nor several settings at once.
func look(ctx context.Context, c redis.Cmdable) (*facts, error) {
	f, err := told(ctx, c)
	if err != nil {
		return nil, err
	}
	return f, f.ask(ctx, c, "appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save", "maxmemory",
		"maxmemory-policy")
}

// told returns what INFO says.
func told(ctx context.Context, c redis.Cmdable) (*facts, error) {
	f := &facts{config: map[string]string{}}
	text, err := c.Info(ctx).Result()
	if err := f.refused(err); err != nil {
		return nil, err
	}
	f.info = fieldsOf(text)
	return f, nil
}

// ask adds settings.
func (f *facts) ask(ctx context.Context, c redis.Cmdable, names ...string) error {
	for _, name := range names {
		settings, err := c.ConfigGet(ctx, name).Result()
		if err := f.refused(err); err != nil {
			return err
		}
		maps.Copy(f.config, settings)
	}
	return nil
}

// fieldsOf returns the fields of INFO.
func fieldsOf(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// refusesWrites returns why Redis answers, but refuses commits; nil if it does not.
func (f *facts) refusesWrites() error {
	// Only some of what Redis uses counts against maxmemory.
	limit, used := number(f.info["maxmemory"]),
		number(f.info["used_memory"])-number(f.info["mem_not_counted_for_evict"])
	switch {
	case f.info["loading"] == "1":
		return errors.New("redis is starting, and loads its data (LOADING)")
	case f.info["role"] == "slave" && f.info["slave_read_only"] != "0":
		return errors.New("this Redis is a replica, which refuses writes (READONLY); check the failover, or " +
			"use the master's address")
	case limit > 0 && used > limit:
		return fmt.Errorf("redis is full: it uses %d of %d bytes (maxmemory), and refuses commits; raise maxmemory",
			used, limit)
	case f.info["aof_enabled"] == "1" && f.info["aof_last_write_status"] == "err":
		return errors.New("redis cannot write its append-only file, and refuses commits (MISCONF); check its disk")
	case f.info["rdb_last_bgsave_status"] == "err" && f.config["save"] != "" &&
		f.config["stop-writes-on-bgsave-error"] == "yes":
		return errors.New("redis cannot write its snapshot, and refuses commits (MISCONF); check its disk")
	}
	return nil
}

// refused returns err, or nil if it means that Redis declines to answer: the user may
// lack the right, and managed servers do not know CONFIG.
func (f *facts) refused(err error) error {
	var reply redis.Error
	if err == nil || !errors.As(err, &reply) || redis.IsMaxClientsError(err) {
		return err
	}
	if text := reply.Error(); !strings.HasPrefix(text, "NOPERM") && !strings.HasPrefix(text, "ERR ") {
		return err
	}
	if f.refusal == nil {
		f.refusal = err
	}
	return nil
}

// setting returns a setting from CONFIG, or else from INFO; "" if neither has it.
func (f *facts) setting(name, field string) string {
	if v := f.config[name]; v != "" {
		return v
	}
	return f.info[field]
}

// judge returns what the facts mean.
func (f *facts) judge() (store.Durability, error) {
	var d store.Durability
	note, err := f.version()
	if err != nil {
		return d, err
	}
	d.Notes = appendNotes(d.Notes, note)
	if f.refusal != nil {
		d.Notes = append(d.Notes, fmt.Sprintf("Redis does not show all of its settings: %v", f.refusal))
	}
	d.Level, note = f.persistence()
	d.Notes = appendNotes(d.Notes, note, f.replication(), f.memory())
	d.Policy = f.setting("maxmemory-policy", "maxmemory_policy")
	d.Evicts = d.Policy != "" && d.Policy != "noeviction"
	if d.Policy == "" {
		d.Notes = append(d.Notes, "whether Redis evicts could not be looked at: make sure that "+
			"maxmemory-policy is noeviction")
	}
	return d, nil
}

// appendNotes appends the notes that are not empty.
func appendNotes(notes []string, more ...string) []string {
	for _, n := range more {
		if n != "" {
			notes = append(notes, n)
		}
	}
	return notes
}

// persistence returns what a commit survives, and a note on what it does not.
func (f *facts) persistence() (store.Level, string) {
	save, saveKnown := f.config["save"]
	switch fsync := f.config["appendfsync"]; f.appendOnly() {
	case "yes":
		switch {
		case fsync == "always" && f.config["no-appendfsync-on-rewrite"] == "yes":
			return store.LevelProcess, "Redis does not sync its append-only file while it saves or rewrites it " +
				"(no-appendfsync-on-rewrite yes): a crash of the machine may lose commits of that time; set it to no"
		case fsync == "always":
			return store.LevelMachine, ""
		case fsync == "everysec":
			return store.LevelProcess, "Redis syncs its append-only file every second (appendfsync everysec): a " +
				"crash of the machine may lose the last second; with appendfsync always it does not"
		case fsync == "no":
			return store.LevelProcess, "Redis leaves it to the operating system when its append-only file is synced " +
				"(appendfsync no): a crash of the machine may lose the last half minute, or more; with " +
				"appendfsync always it does not"
		}
		return store.LevelProcess, "Redis has an append-only file, but when it is synced could not be looked at: a " +
			"crash of the machine may lose commits"
	case "no":
		if saveKnown && save == "" {
			return store.LevelProcess, `REDIS KEEPS NOTHING ON DISK (appendonly no, save ""): when Redis ends or ` +
				`crashes, ALL THREADS ARE LOST; ` +
				"CONFIG SET appendonly yes, and write it to redis.conf"
		}
		return store.LevelProcess, "REDIS HAS NO APPEND-ONLY FILE (appendonly no): a crash of Redis loses EVERYTHING " +
			"SINCE ITS LAST SNAPSHOT, which may be an hour old, if it saves any; CONFIG SET appendonly yes, " +
			"and write it to redis.conf"
	}
	return store.LevelProcess, "whether Redis keeps its data on disk could not be looked at: a crash " +
		"of Redis may lose threads"
}

// appendOnly returns yes, no, or "" if it is unknown.
func (f *facts) appendOnly() string {
	if v := f.config["appendonly"]; v != "" {
		return v
	}
	return map[string]string{"0": "no", "1": "yes"}[f.info["aof_enabled"]]
}

// replication returns a note on what a failover means.
func (f *facts) replication() string {
	if f.info["role"] == "slave" {
		return "this Redis is a replica, which refuses writes: use the master's address, or Sentinel"
	}
	switch n := number(f.info["connected_slaves"]); {
	case n > 0 && f.need == 0:
		return fmt.Sprintf("Redis acknowledges before its replicas (%d connected) have a commit: a failover to one "+
			"of them may lose what was acknowledged; with --durability=failover it does not", n)
	case n > int64(f.need):
		return fmt.Sprintf("%d replicas are connected, and %d of them must have a commit: a failover to another one "+
			"may lose what was acknowledged; use --durability=failover:%d, or give those that must not become "+
			"primary replica-priority 0", n, f.need, n)
	}
	return ""
}

// memory returns a note if Redis is almost full: unless it evicts, it will refuse
// writes.
func (f *facts) memory() string {
	limit, used := number(f.setting("maxmemory", "maxmemory")), number(f.info["used_memory"])
	if limit == 0 || used < limit-limit/10 {
		return ""
	}
	return fmt.Sprintf("Redis is almost full: it uses %d of %d bytes (maxmemory), and refuses commits when nothing "+
		"is left; raise maxmemory", used, limit)
}

// version returns an error if Redis is too old to work, and a note if it is old. Valkey
// names here the version of Redis that it is compatible with.
func (f *facts) version() (string, error) {
	v, ok := f.info["redis_version"]
	if !ok {
		return "", nil
	}
	major, rest, _ := strings.Cut(v, ".")
	minor, _, _ := strings.Cut(rest, ".")
	switch m := number(major); {
	case m < 6 || m == 6 && number(minor) < 2:
		return "", fmt.Errorf("version %s is too old: use 6.2 or newer", v)
	case m < 7:
		return fmt.Sprintf("Redis %s is older than 7.0, with which Holdfast is tested; use a newer one", v), nil
	}
	return "", nil
}

// number reads a number; anything else is 0.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
