// Command bench puts the same load on a floor server and on Holdfast, with its
// threads in Redis and in a file, in the same run on the same machine, and
// prints the ratios that docs/benchmarks.md quotes. It fails if a bar is missed.
//
//	go run ./bench                  every scenario
//	go run ./bench -only paced1k    one of them
//	go run ./bench -only storm -before OLD   and what another build of the server does
//	go run ./bench -runs 200 -rate 20   200 runs at a time, of 20 tokens/s each
//	go run ./bench -growth          bytes to disk of the embedded store
//	go run ./bench -fairness        one tenant's commits beside a loud one
//	go run ./bench -hostile         one tenant's runs beside 400 requests that are made to keep the server busy
//	go run ./bench -watchers        memory of idle watchers, and what many cost Redis
//	go run ./bench -idle            what idle servers cost
package main

// The program: starts each server in turn, runs the scenarios and reports their figures.

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var b bench
	flag.IntVar(&b.repeat, "repeat", 3, "how often each server is measured, in turns; medians are compared")
	flag.StringVar(&b.only, "only", "", "only the scenarios whose names start with this")
	flag.IntVar(&b.runs, "runs", 0, "instead of the scenarios: this many runs at a time")
	flag.IntVar(&b.rate, "rate", 50, "tokens per second of each of the -runs")
	flag.StringVar(&b.before, "before", "", "another build of the server, measured in the same turns")
	growth := flag.Bool(
		"growth",
		false,
		"instead of load: bytes written to disk per iteration, around iteration 20 and 980",
	)
	fair := flag.Bool(
		"fairness",
		false,
		"instead of load: one tenant's commits while another sends the largest requests",
	)
	idle := flag.Bool("idle", false, "instead of load: what 1, 3 and 10 idle servers ask Redis for, and what they use")
	var f fairness
	f.flags(flag.CommandLine)
	rough := flag.Bool(
		"hostile",
		false,
		"instead of load: one tenant's runs while another's requests are made to keep the server busy",
	)
	var h hostile
	h.flags(flag.CommandLine)
	watch := flag.Bool(
		"watchers",
		false,
		"instead of load: what idle watchers hold in memory, and what many watchers of a run cost Redis",
	)
	var l watchers
	l.flags(flag.CommandLine)
	serve := flag.String(
		"serve",
		"",
		"act as a helper of the bench: model, floor, fairness, hostile, watched, bare or storm",
	)
	control := flag.String("control", "", "another address on which a helper listens")
	storeURL := flag.String("store", "", "the store of a helper")
	addr := flag.String("addr", "", "the address on which a helper listens")
	model := flag.String("model", "", "the model's URL, for the floor")
	redisURL := flag.String("redis", "", "the Redis URL, for the floor")
	flag.Parse()
	var err error
	switch {
	case *serve == "bare":
		err = serveBare(*addr, *control)
	case *serve == "watched":
		err = serveWatched(*addr, *storeURL, *control)
	case *serve != "":
		err = helper(*serve, *addr, *model, *redisURL, *storeURL)
	case *fair:
		f.only = b.only
		err = f.run()
	case *rough:
		h.only = b.only
		err = h.run()
	case *idle:
		err = measureIdle()
	case *growth:
		err = measureGrowth()
	case *watch:
		err = l.run()
	default:
		err = b.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func helper(what, addr, model, redisURL, storeURL string) error {
	switch what {
	case "fairness":
		return serveFair(addr, storeURL)
	case "hostile":
		return serveHostile(addr, storeURL)
	case "storm":
		return serveStorm(addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if what == "model" {
		return serveModel(l)
	}
	return serveFloor(l, model, redisURL)
}

// target is a server under load.
type target struct {
	*process
	name  string
	redis *redisServer
	part  string // makes thread names unique
}

// thread returns the name of a thread that no other run of the bench uses.
func (t *target) thread(client, n int) string { return fmt.Sprintf("%s-%d-%d", t.part, client, n) }

// bench runs the scenarios.
type bench struct {
	repeat     int
	only       string
	before     string
	runs, rate int

	dir, binary, self string
	redis, synced     *redisServer // synced syncs every command
	model             *process
	// modelFirst is the model's own time to its first token, in ms.
	modelFirst float64
	missed     []string
}

// The targets, in the order of turns.
const (
	onFloor = "floor"
	onRedis = "holdfast redis"
	onFile  = "holdfast file"
	// onSynced is Holdfast on Redis with appendfsync always.
	onSynced = "holdfast redis, synced"
	// onWindow is Holdfast on Redis with a delta window.
	onWindow = "with --delta-window=1s"
	// onBefore is the build of -before on Redis.
	onBefore = "before"
)

func (b *bench) run() (err error) {
	if b.dir, b.binary, err = build(); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.redis, err = startRedis("everysec"); err != nil {
		return err
	}
	defer b.redis.stop()
	if b.synced, err = startRedis("always"); err != nil {
		return err
	}
	defer b.synced.stop()
	if b.model, err = launch(1, nil, b.self, "-serve", "model", "-addr", "{addr}"); err != nil {
		return err
	}
	defer b.model.stop()
	if b.modelFirst, err = firstToken(b.model.url); err != nil {
		return err
	}
	all := scenarios()
	if b.runs > 0 {
		all = []scenario{custom(b.runs, b.rate)}
	}
	for _, s := range all {
		if strings.HasPrefix(s.name, b.only) {
			if err := b.scenario(s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	if len(b.missed) > 0 {
		return errors.New("missed: " + strings.Join(b.missed, "; "))
	}
	return nil
}

// scenario measures the targets in turns, each time with a new process.
func (b *bench) scenario(s scenario) error {
	if b.before != "" {
		s.targets = slices.Insert(slices.Clone(s.targets), 1, onBefore)
	}
	results := map[string][]*result{}
	for n := range max(b.repeat, s.turns) {
		for _, name := range s.targets {
			t, err := b.launch(name, fmt.Sprintf("%s%d", s.name, n), s.agents)
			if err != nil {
				return err
			}
			if s.before != nil {
				err = s.before(t)
			}
			var r *result
			if err == nil {
				r, err = s.run(t)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w\n%s", name, err, t.out.String())
			}
			t.stop()
			if err != nil {
				return err
			}
			results[name] = append(results[name], r)
		}
	}
	fmt.Printf("== %s: %s\n", s.name, s.about)
	for _, f := range s.figures {
		b.report(s, f, results)
	}
	return nil
}

// report prints one figure of all targets and compares it with its bar.
func (b *bench) report(s scenario, f figure, results map[string][]*result) {
	of := func(name string) float64 {
		var all []float64
		for _, r := range results[name] {
			all = append(all, f.of(r))
		}
		return median(all)
	}
	line := fmt.Sprintf("   %-32s", f.name)
	for _, name := range s.targets {
		line += fmt.Sprintf("  %s %.4g", name, of(name))
		if name == onBefore && f.ratio {
			line += fmt.Sprintf(" (ratio %.2f)", ratios(f, results[name], results[onFloor]))
		}
	}
	if f.before > 0 {
		line += fmt.Sprintf("  (before: %.4g)", f.before)
	}
	name := cmp.Or(s.judged, onRedis)
	got, what := of(name), "at most"
	if f.ratio {
		got = ratios(f, results[name], results[cmp.Or(s.against, onFloor)])
		what = "ratio " + fmt.Sprintf("%.2f", got) + ", at most"
	}
	if f.added {
		got -= b.modelFirst
		what = fmt.Sprintf("%.2f more than the model alone, at most", got)
	}
	if f.limit > 0 {
		verdict := "ok"
		if got > f.limit {
			verdict = "MISSED"
			b.missed = append(b.missed, fmt.Sprintf("%s: %s is %.4g, at most %g", s.name, f.name, got, f.limit))
		}
		line += fmt.Sprintf("  (%s %g: %s)", what, f.limit, verdict)
	}
	fmt.Println(line)
}

// ratios returns the median of the ratios of all turns: whatever else the machine is
// doing affects both servers of a turn.
func ratios(f figure, of, other []*result) float64 {
	var all []float64
	for i := range of {
		all = append(all, f.of(of[i])/f.of(other[i]))
	}
	return median(all)
}

func (b *bench) launch(name, part, agents string) (t *target, err error) {
	t = &target{name: name, redis: b.redis, part: strings.NewReplacer(" ", "-", ",", "").Replace(name) + "-" + part}
	if name == onFloor {
		t.process, err = launch(
			0,
			nil,
			b.self,
			"-serve",
			"floor",
			"-addr",
			"{addr}",
			"-model",
			b.model.url+"/v1",
			"-redis",
			b.redis.url(),
		)
		return t, err
	}
	store := b.redis.url()
	switch name {
	case onFile:
		store = "file:" + filepath.Join(b.dir, t.part)
	case onSynced:
		store = b.synced.url()
	}
	args := []string{
		"--addr",
		"{addr}",
		"--store",
		store,
		"--model",
		"openai/bench",
		"--max-iterations",
		"2000",
		"--lease",
		"30s",
	}
	if name == onWindow {
		args = append(args, "--delta-window=1s")
	}
	if agents != "" {
		file := filepath.Join(b.dir, t.part+".yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(agents, "{model}", b.model.url)), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--config", file)
	}
	if b.before != "" {
		// Each build writes its own data format: neither finds what the other one agreed on.
		if err := errors.Join(b.redis.forgetFormat(), b.synced.forgetFormat()); err != nil {
			return nil, err
		}
	}
	env := []string{"OPENAI_BASE_URL=" + b.model.url + "/v1", "OPENAI_API_KEY=bench"}
	binary := b.binary
	if name == onBefore {
		binary = b.before
	}
	t.process, err = launch(0, env, binary, args...)
	return t, err
}
