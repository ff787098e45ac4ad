package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The Redis of the bench, and what it says a load has cost it.

// redisServer is a redis-server for the bench, on the CPU that all helpers share.
type redisServer struct {
	*process
	addr   string
	client *redis.Client
}

// startRedis starts one that syncs as fsync says, on a processor of its own.
func startRedis(fsync string) (*redisServer, error) {
	if _, err := exec.LookPath("taskset"); err == nil {
		return startRedisWith(fsync, "taskset", "-c", "1")
	}
	return startRedisWith(fsync)
}

// startRedisWith starts one by means of another command.
func startRedisWith(fsync string, command ...string) (*redisServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-redis-")
	if err != nil {
		return nil, err
	}
	s := &redisServer{process: &process{}, addr: addr}
	args := append(command, "redis-server", "--port", port, "--dir", dir, "--save", "", "--enable-debug-command", "yes")
	args = append(args, "--appendonly", "yes", "--appendfsync", fsync)
	s.cmd = exec.Command(args[0], args[1:]...)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s.client = redis.NewClient(&redis.Options{Addr: addr})
	for range 500 {
		if err = s.client.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("redis-server does not answer: %w", err)
}

func (s *redisServer) url() string { return "redis://" + s.addr }

// info returns the figures of sections of INFO by their names. Of a command's statistics the
// figure is the number of calls.
func (s *redisServer) info(sections ...string) (map[string]float64, error) {
	text, err := s.client.Info(context.Background(), sections...).Result()
	figures := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			figures[name] = f
		}
	}
	return figures, err
}

// usage is how much Redis has been used so far.
type usage struct {
	commands float64 // executed commands, including those inside scripts and transactions
	requests float64 // those of them that came over the network
	bytes    float64 // received bytes
}

// usage reads INFO, after giving the last run's remaining work time to arrive.
func (s *redisServer) usage() (u usage, err error) {
	time.Sleep(200 * time.Millisecond)
	figures, err := s.info("stats", "commandstats")
	u.bytes = figures["total_net_input_bytes"]
	for name, n := range figures {
		if strings.HasPrefix(name, "cmdstat_") {
			u.commands += n
		}
	}
	for _, name := range []string{"evalsha", "eval", "exec"} {
		u.requests += figures["cmdstat_"+name]
	}
	return u, err
}

// since is what has been used after before.
func (u usage) since(before usage) usage {
	return usage{u.commands - before.commands, u.requests - before.requests, u.bytes - before.bytes}
}

// during returns what f has Redis do.
func (s *redisServer) during(f func() error) (usage, error) {
	before, err := s.usage()
	if err != nil {
		return usage{}, err
	}
	if err := f(); err != nil {
		return usage{}, err
	}
	after, err := s.usage()
	return after.since(before), err
}

// held returns how much memory the keys take whose names contain part.
func (s *redisServer) held(part string) (bytes int64, err error) {
	ctx := context.Background()
	for keys := s.client.Scan(ctx, 0, "*"+part+"*", 10_000).Iterator(); keys.Next(ctx); {
		n, err := s.client.MemoryUsage(ctx, keys.Val(), 0).Result()
		if err != nil {
			return 0, fmt.Errorf("measure the key %s: %w", keys.Val(), err)
		}
		bytes += n
	}
	return bytes, nil
}
