// Command bench loads the built server and a floor server in the same run, on
// the same machine, and prints the ratios that docs/benchmarks.md quotes.
//
//	go run ./bench -runs 100 -rate 50 -seconds 10
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	var c config
	flag.IntVar(&c.runs, "runs", 100, "concurrent runs")
	flag.IntVar(&c.rate, "rate", 50, "deltas per second and run")
	flag.IntVar(&c.seconds, "seconds", 10, "how long")
	flag.IntVar(&c.rounds, "rounds", 3, "how often both servers take turns")
	growth := flag.Bool("growth", false, "instead of load: bytes written per iteration, at iteration 10 and at iteration 1,000")
	flag.Float64Var(&c.limit, "limit", 6, "the highest allowed ratio of CPU per delta to the floor's; 0 is none")
	floor := flag.String("floor", "", "serve as the floor server at this address (used by the program itself)")
	flag.Parse()
	var err error
	if *floor != "" {
		var l net.Listener
		if l, err = net.Listen("tcp", *floor); err == nil {
			err = serveFloor(l, time.Second/time.Duration(10*c.rate))
		}
	} else if *growth {
		err = measureGrowth()
	} else {
		err = c.compare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type config struct {
	runs, rate, seconds, rounds int
	limit                       float64
}

// figures are what one server did under load.
type figures struct {
	frames int
	deltas int
	cpu    time.Duration
	gaps   []time.Duration // between frames, as a client sees them
}

func (f figures) perDelta() time.Duration { return f.cpu / time.Duration(max(f.deltas, 1)) }

// compare lets both servers take turns and compares medians.
func (c config) compare() error {
	dir, binary, err := build()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// "slow N" pauses ten times the delay before each word.
	delay := time.Second / time.Duration(10*c.rate)
	var ours, floor []time.Duration
	for round := range c.rounds {
		f, err := c.load(self, "-floor", "{addr}", "-rate", strconv.Itoa(c.rate))
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		store := "bolt:" + filepath.Join(dir, fmt.Sprintf("bench%d.db", round))
		h, err := c.load(binary, "--addr", "{addr}", "--store", store, "--demo-delay", delay.String())
		if err != nil {
			return fmt.Errorf("holdfast: %w", err)
		}
		fmt.Printf("round %d  floor    %s\n         holdfast %s\n", round+1, f, h)
		floor, ours = append(floor, f.perDelta()), append(ours, h.perDelta())
	}
	ratio := float64(median(ours)) / float64(median(floor))
	fmt.Printf("CPU per delta at %d runs x %d/s on bbolt: %.2f x the floor (limit %g)\n", c.runs, c.rate, ratio, c.limit)
	if c.limit > 0 && ratio > c.limit {
		return errors.New("the ratio is above the limit")
	}
	return nil
}

// build makes the server in a new folder, which the caller removes.
func build() (dir, binary string, err error) {
	if dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return "", "", err
	}
	binary = filepath.Join(dir, "holdfast")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/server")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return dir, "", errors.Join(fmt.Errorf("build the server: %w", err), os.RemoveAll(dir))
	}
	return dir, binary, nil
}

func (f figures) String() string {
	slices.Sort(f.gaps)
	return fmt.Sprintf("%7d deltas in %7d frames, CPU %6.2fs = %6.1f µs a delta, frame gap p50 %s p99 %s",
		f.deltas, f.frames, f.cpu.Seconds(), float64(f.perDelta().Nanoseconds())/1000, percentile(f.gaps, 50), percentile(f.gaps, 99))
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)].Round(10 * time.Microsecond)
}

// load starts a server, puts the load on it and measures its process.
func (c config) load(program string, args ...string) (f figures, err error) {
	addr, err := freeAddr()
	if err != nil {
		return f, err
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{addr}", addr)
	}
	cmd := exec.Command(program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return f, err
	}
	defer func() {
		// The server is only there to be measured.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if err := ready("http://" + addr); err != nil {
		return f, fmt.Errorf("%w: %s", err, out.String())
	}
	before, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return f, err
	}
	words := c.rate * c.seconds
	results := make(chan figures, c.runs)
	errs := make(chan error, c.runs)
	var wg sync.WaitGroup
	for i := range c.runs {
		wg.Go(func() {
			// Spread over one period, as independent users are.
			time.Sleep(time.Duration(i) * time.Second / time.Duration(c.rate) / time.Duration(c.runs))
			r, err := one("http://"+addr, fmt.Sprintf("t%d", i), words)
			if err != nil {
				errs <- err
				return
			}
			results <- r
		})
	}
	wg.Wait()
	close(results)
	select {
	case err := <-errs:
		return f, err
	default:
	}
	after, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return f, err
	}
	for r := range results {
		f.frames += r.frames
		f.gaps = append(f.gaps, r.gaps...)
	}
	f.deltas, f.cpu = words*c.runs, after-before
	return f, nil
}

// one is one client with one run.
func one(url, thread string, words int) (f figures, err error) {
	body := fmt.Sprintf(`{"threadId":%q,"runId":"r","protocolVersion":"1.0","messages":[{"id":"u","role":"user","content":"slow %d"}]}`, thread, words)
	res, err := http.Post(url+"/runs", "application/json", strings.NewReader(body))
	if err != nil {
		return f, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return f, fmt.Errorf("status %d", res.StatusCode)
	}
	finished := false
	last := time.Now()
	for scan := bufio.NewScanner(res.Body); scan.Scan(); {
		line := scan.Bytes()
		if !bytes.HasPrefix(line, []byte("data: ")) {
			continue
		}
		f.frames++
		now := time.Now()
		f.gaps = append(f.gaps, now.Sub(last))
		last = now
		finished = bytes.Contains(line, []byte(`"RUN_FINISHED"`))
	}
	if !finished {
		return f, errors.New("a run did not finish")
	}
	return f, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func ready(url string) error {
	for range 2000 {
		if res, err := http.Get(url + "/readyz"); err == nil {
			res.Body.Close()
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("the server did not start")
}

// cpuTime is what the process has used so far, user and system, from
// /proc/PID/stat in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("the load bench needs Linux: %w", err)
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return 0, errors.New("/proc/PID/stat has an unknown form")
	}
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}
