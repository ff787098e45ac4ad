package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The servers under load, and their needs.

// target is a server under load.
type target struct {
	*process
	name  string
	redis *redisServer
	part  string // makes thread names unique
}

// thread returns the name of a thread that no other run of the bench uses.
func (t *target) thread(client, n int) string { return fmt.Sprintf("%s-%d-%d", t.part, client, n) }

// The targets, in the order of turns.
const (
	onFloor = "floor"
	onRedis = "redis"
	onFile  = "file"
	// onSynced is Holdfast on Redis with appendfsync always.
	onSynced = "redis, synced"
	// onWindow is Holdfast on Redis with a delta window.
	onWindow = "redis, --delta-window=1s"
	// before, in front of another target, is the same with the build before.
	before = "before, "
)

// rig is what all targets share: the programs, the model and Redis.
type rig struct {
	dir, self       string
	binary, earlier string       // the server of this build, and of the one before, empty if there is none
	since           string       // the commit of the build before, as -before names it
	redis, synced   *redisServer // synced syncs every command
	model           *process
	// modelFirst is the model's own time to its first token, in ms.
	modelFirst float64
	ends       []func()
}

func (r *rig) open() (err error) {
	if r.dir, r.binary, err = build(); err != nil {
		return err
	}
	r.ends = append(r.ends, func() { os.RemoveAll(r.dir) })
	if r.since != none {
		if r.since, r.earlier, err = buildBefore(r.dir, r.since); err != nil {
			return err
		}
		fmt.Printf("The build before is %s.\n", r.since)
	}
	if r.self, err = os.Executable(); err != nil {
		return err
	}
	if r.redis, err = startRedis("everysec"); err != nil {
		return err
	}
	r.ends = append(r.ends, r.redis.stop)
	if r.synced, err = startRedis("always"); err != nil {
		return err
	}
	r.ends = append(r.ends, r.synced.stop)
	if r.model, err = launch(1, nil, r.self, "-serve=model", "-addr={addr}"); err != nil {
		return err
	}
	r.ends = append(r.ends, r.model.stop)
	r.modelFirst, err = firstToken(r.model.url)
	return err
}

func (r *rig) close() {
	for _, end := range slices.Backward(r.ends) {
		end()
	}
}

// launch starts a target.
func (r *rig) launch(name, part, agents string) (t *target, err error) {
	t = &target{name: name, redis: r.redis, part: strings.NewReplacer(" ", "-", ",", "").Replace(name) + "-" + part}
	if name == onFloor {
		model, redis := "-model="+r.model.url+"/v1", "-redis="+r.redis.url()
		t.process, err = launch(0, nil, r.self, "-serve=floor", "-addr={addr}", model, redis)
		return t, err
	}
	binary, store := r.binary, r.redis.url()
	name, earlier := strings.CutPrefix(name, before)
	if earlier {
		binary = r.earlier
	}
	switch name {
	case onFile:
		store = "file:" + filepath.Join(r.dir, t.part)
	case onSynced:
		store = r.synced.url()
	}
	args := []string{"--addr={addr}", "--store=" + store, "--model=openai/bench"}
	args = append(args, "--max-iterations=2000", "--lease=30s")
	if name == onWindow {
		args = append(args, "--delta-window=1s")
	}
	if agents != "" {
		file := filepath.Join(r.dir, t.part+".yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(agents, "{model}", r.model.url)), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--config="+file)
	}
	env := []string{"OPENAI_BASE_URL=" + r.model.url + "/v1", "OPENAI_API_KEY=bench"}
	t.process, err = launch(0, env, binary, args...)
	return t, err
}
