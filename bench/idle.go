package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// Idle servers: what they ask Redis for while nothing happens, and while one of them owns a
// run that does nothing, so that the others look whether it lives.

// idleFor is how long each row is measured, and idleBefore how long after the servers have
// started: what they do at first is not what they do from then on.
const idleFor, idleBefore = 20 * time.Second, 5 * time.Second

// idleFleets are how many servers there are.
func idleFleets() []int { return []int{1, 3, 10} }

// measureIdle prints a table.
func measureIdle() (err error) {
	dir, binary, err := build()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("| servers | runs | commands/s | KB/s to and from Redis | CPU of Redis | CPU of each server |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, n := range idleFleets() {
		if err := measureFleet(binary, n); err != nil {
			return err
		}
	}
	return nil
}

// measureFleet prints the rows of so many servers.
func measureFleet(binary string, n int) error {
	redis, err := startRedis("everysec")
	if err != nil {
		return err
	}
	defer redis.stop()
	var fleet []*process
	for range n {
		p, err := launch(0, nil, binary, "--addr", "{addr}", "--store", redis.url())
		if err != nil {
			return err
		}
		defer p.stop()
		fleet = append(fleet, p)
	}
	if err := measureQuiet(redis, fleet, n, "none"); err != nil {
		return err
	}
	const words = `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[{"id":"m","role":"user",` +
		`"content":"wait 55 seconds"}]}`
	res, err := http.Post(fleet[0].url+"/runs", "application/json", strings.NewReader(words))
	if err != nil {
		return err
	}
	defer res.Body.Close() // nobody watches it
	return measureQuiet(redis, fleet[min(1, n-1):], n, "one, which waits")
}

// measureQuiet prints a row; fleet are those of the n servers whose CPU counts.
func measureQuiet(redis *redisServer, fleet []*process, n int, runs string) error {
	time.Sleep(idleBefore)
	before, cpuBefore, err := quietUsage(redis, fleet)
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(idleFor)
	after, cpuAfter, err := quietUsage(redis, fleet)
	if err != nil {
		return err
	}
	lasted := time.Since(began).Seconds()
	per := func(name string) float64 { return (after[name] - before[name]) / lasted }
	// Asking for these figures is two commands.
	fmt.Printf("| %d | %s | %.0f | %.1f | %.2f %% | %.2f %% |\n", n, runs, per("total_commands_processed")-2/lasted,
		(per("total_net_input_bytes")+per("total_net_output_bytes"))/1000,
		100*(per("used_cpu_sys")+per("used_cpu_user")), 100*(cpuAfter-cpuBefore).Seconds()/lasted/float64(len(fleet)))
	return nil
}

// quietUsage returns figures of Redis by their name, and the CPU of the servers.
func quietUsage(redis *redisServer, fleet []*process) (figures map[string]float64, cpu time.Duration, err error) {
	figures, err = redis.info("stats", "cpu")
	for _, p := range fleet {
		used, failed := p.cpu()
		cpu, err = cpu+used, errors.Join(err, failed)
	}
	return figures, cpu, err
}
