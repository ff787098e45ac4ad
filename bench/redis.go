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
	args := append(
		command,
		"redis-server",
		"--port",
		port,
		"--dir",
		dir,
		"--save",
		"",
		"--enable-debug-command",
		"yes",
		"--appendonly",
		"yes",
		"--appendfsync",
		fsync,
	)
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

// forgetFormat has the next server find no trace of another one, and no data format agreed on.
func (s *redisServer) forgetFormat() error {
	return s.client.Del(context.Background(), "hf:leases", "hf:{hf:leases}:formats", "hf:processes").Err()
}

// rewrites returns how often Redis has rewritten its append-only file, and for how long the
// last fork for that has stopped it.
func (s *redisServer) rewrites() (n int, fork time.Duration, err error) {
	text, err := s.client.Info(context.Background(), "persistence", "stats").Result()
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "aof_rewrites":
			n, err = strconv.Atoi(value)
		case "latest_fork_usec":
			fork, err = time.ParseDuration(value + "us")
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return n, fork, nil
}

// usage is how much Redis has been used so far.
type usage struct {
	commands int64 // executed commands, including those inside scripts and transactions
	requests int64 // those of them that came over the network
	bytes    int64 // received bytes
}

// usage reads INFO, after giving the last run's remaining work time to arrive.
func (s *redisServer) usage() (u usage, err error) {
	time.Sleep(200 * time.Millisecond)
	text, err := s.client.Info(context.Background(), "stats", "commandstats").Result()
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "total_net_input_bytes":
			u.bytes, err = strconv.ParseInt(value, 10, 64)
		case strings.HasPrefix(name, "cmdstat_"):
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			var n int64
			n, err = strconv.ParseInt(calls, 10, 64)
			u.commands += n
			switch strings.TrimPrefix(name, "cmdstat_") {
			case "evalsha", "eval", "exec":
				u.requests += n
			}
		}
		if err != nil {
			return u, err
		}
	}
	return u, nil
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
