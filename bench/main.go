// Command bench puts the same load on a floor server and on Holdfast, with its
// threads in Redis and in a file, in the same run on the same machine, and
// prints the ratios that docs/benchmarks.md quotes. It fails if a bar is missed.
//
//	go run ./bench                  every scenario
//	go run ./bench -only paced1k    one of them
//	go run ./bench -runs 200 -rate 20   200 runs at a time, of 20 tokens/s each
//	go run ./bench -growth          bytes to disk of the embedded store
//	go run ./bench -fairness        one tenant's commits beside a loud one
//	go run ./bench -hostile         one tenant's runs beside 400 requests that are made to keep the server busy
//	go run ./bench -watchers        memory of idle watchers, and what many cost Redis
//	go run ./bench -placed          what a word costs with its watcher at the server of its thread, and at another
//	go run ./bench -idle            what idle servers cost
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
)

func main() {
	var b bench
	b.flags(flag.CommandLine)
	var f fairness
	f.flags(flag.CommandLine)
	var h hostile
	h.flags(flag.CommandLine)
	var l watchers
	l.flags(flag.CommandLine)
	var s role
	s.flags(flag.CommandLine)
	run := b.run
	instead := func(name, usage string, f func() error) {
		flag.BoolFunc(name, "instead of load: "+usage, func(string) error {
			run = f
			return nil
		})
	}
	instead("growth", "bytes written to disk per iteration, around iteration 20 and 980", measureGrowth)
	instead("fairness", "one tenant's commits while another sends the largest requests", f.run)
	instead("idle", "what 1, 3 and 10 idle servers ask Redis for, and what they use", measureIdle)
	instead("hostile", "one tenant's runs while another's requests are made to keep the server busy", h.run)
	instead("watchers", "what idle watchers hold in memory, and what many watchers of a run cost Redis", l.run)
	instead("placed", "what a word costs while its watcher is at the server that runs the thread, and at another one",
		measurePlaced)
	flag.Parse()
	f.only, h.only = b.only, b.only
	switch s.what {
	case "":
	case "crowd":
		run = func() error { return h.crowd(s.addr) }
	default:
		run = s.serve
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// role is what this program is when the bench starts it as one of its helpers.
type role struct{ what, addr, control, store, model, redis string }

func (r *role) flags(fs *flag.FlagSet) {
	fs.StringVar(&r.what, "serve", "", "act as a helper: model, floor, fairness, hostile, "+
		"crowd, watched, bare or storm")
	fs.StringVar(&r.addr, "addr", "", "the address on which a helper listens; for a crowd, the server's URL")
	fs.StringVar(&r.control, "control", "", "another address on which a helper listens")
	fs.StringVar(&r.store, "store", "", "the store of a helper")
	fs.StringVar(&r.model, "model", "", "the model's URL, for the floor")
	fs.StringVar(&r.redis, "redis", "", "the Redis URL, for the floor")
}

func (r *role) serve() error {
	switch r.what {
	case "bare":
		return serveBare(r.addr, r.control)
	case "watched":
		return serveWatched(r.addr, r.store, r.control)
	case "fairness":
		return serveFair(r.addr, r.store)
	case "hostile":
		return serveHostile(r.addr, r.store)
	case "storm":
		return serveStorm(r.addr)
	}
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		return err
	}
	if r.what == "model" {
		return serveModel(l)
	}
	return serveFloor(l, r.model, r.redis)
}
