package simulate

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seed    = flag.Uint64("seed", 0, "the seed whose story is printed")
	seeds   = flag.String("seeds", "", "the seeds that are played, such as 1..1000")
	spell   = flag.Duration("spell", 0, "play seeds from a new one on for so long")
	stop    = flag.Bool("stop", false, "stop at the first seed that breaks a promise")
	stories = flag.String("stories", "", "write each seed's story to a file in this directory")
	through = flag.Bool("redis", false, "go through the Redis layer")
	keep    = flag.String("keep", "", "write the shortened story of -seed to this file")
)

// inCI is how many seeds are played if nobody says which.
const inCI = "1..200"

// play plays a seed in a bubble of its own.
func play(t *testing.T, seed uint64, o Options) (r *Result) {
	defer func() {
		if r == nil {
			fmt.Printf("seed %d does not come to its end (make simulate SEED=%d)\n", seed, seed)
		}
	}()
	synctest.Test(t, func(*testing.T) { r = Run(seed, o) })
	return r
}

// TestRedis: schedules go through the Redis layer, too.
func TestRedis(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			if r := Run(1+seed, Options{Redis: true}); r.Violation != nil {
				t.Errorf("%v\n%s", r.Violation, strings.Join(r.Story, "\n"))
			}
		})
	}
}

// TestSeed prints the story of a seed and, if it breaks a promise, the fewest steps that do.
func TestSeed(t *testing.T) {
	if *seed == 0 {
		t.Skip("no seed is asked for: make simulate SEED=n")
	}
	r := play(t, *seed, Options{Redis: *through})
	fmt.Println(strings.Join(r.Story, "\n"))
	if r.Violation == nil {
		return
	}
	t.Errorf("seed %d: %v", *seed, r.Violation)
	steps := Shrink(r.Steps, func(steps []string) bool {
		again := play(t, *seed, Options{Script: steps, Redis: *through, Untold: true})
		return again.Violation != nil && again.Violation.Promise == r.Violation.Promise
	})
	fmt.Printf("\nshortened to %d of %d steps:\n%s\n", len(steps), len(r.Steps),
		strings.Join(play(t, *seed, Options{Script: steps, Redis: *through}).Story, "\n"))
	if *keep != "" {
		text := fmt.Sprintf("# %v\nseed %d\n%s\n", r.Violation, *seed, strings.Join(steps, "\n"))
		if *through {
			text = "redis\n" + text
		}
		if err := os.WriteFile(*keep, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// bounds returns which seeds to play, and until when.
func bounds(t *testing.T) (first, last uint64, until time.Time) {
	t.Helper()
	if *spell > 0 {
		now := time.Now()
		return uint64(now.UnixNano()) >> 20, ^uint64(0), now.Add(*spell)
	}
	from, to, ok := strings.Cut(cmp.Or(*seeds, inCI), "..")
	first, err := strconv.ParseUint(from, 10, 64)
	if err == nil && ok {
		last, err = strconv.ParseUint(to, 10, 64)
	}
	if err != nil || !ok {
		t.Fatalf("-seeds=%s is not a range such as 1..1000", *seeds)
	}
	return first, last, time.Time{}
}

// TestSeeds plays a range of seeds. None may break a promise.
func TestSeeds(t *testing.T) {
	first, last, until := bounds(t)
	debug.SetGCPercent(400) // most of the time would go by with collecting what is little
	// A sync.Pool keeps what was in it for one collection more, routers with their servers too, so the heap would
	// grow with each.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
	var next, played, steps atomic.Uint64
	next.Store(first - 1)
	began := time.Now()
	fmt.Printf("playing seeds from %d on\n", first) // before a panic can end the process
	t.Run("all", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1); n <= last && (until.IsZero() || time.Now().Before(until)); n = next.Add(1) {
					r := play(t, n, Options{Redis: *through, Untold: *stories == ""})
					played.Add(1)
					steps.Add(uint64(len(r.Steps)))
					if *stories != "" {
						if err := os.WriteFile(storyFile(*stories, n), []byte(strings.Join(r.Story, "\n")),
							0o600); err != nil {
							t.Error(err)
						}
					}
					if r.Violation != nil {
						t.Errorf("seed %d: %v (make simulate SEED=%d)", n, r.Violation, n)
						if *stop {
							next.Store(last)
						}
					}
				}
			})
		}
	})
	fmt.Printf("seeds %d..%d: %d schedules of %d steps in %s\n", first, first+played.Load()-1, played.Load(),
		steps.Load()/max(1, played.Load()), time.Since(began).Round(time.Millisecond))
}

// TestReplay: a seed has the same story in another process with another number of processors.
func TestReplay(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		last  uint64
		redis bool
	}{"memory": {1099, *through}, "redis": {1009, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := told(t, exe, 1000, c.last, "1", c.redis), told(t, exe, 1000, c.last, "4", c.redis)
			for n := uint64(1000); n <= c.last; n++ {
				if where := differ(t, storyFile(one, n), storyFile(other, n)); where != "" {
					t.Errorf("the seed %d has another story: %s", n, where)
				}
			}
		})
	}
}

// told has a process with so many processors play seeds, and returns the directory of their stories.
func told(t *testing.T, exe string, first, last uint64, processors string, redis bool) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-test.run=^TestSeeds$", fmt.Sprintf("-seeds=%d..%d", first, last), "-stories=" + dir}
	if redis {
		args = append(args, "-redis")
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+processors)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// storyFile returns the file of a seed's story.
func storyFile(dir string, seed uint64) string {
	return filepath.Join(dir, strconv.FormatUint(seed, 10)+".txt")
}

// differ returns the first line in which two stories differ; empty if they are the same.
func differ(t *testing.T, one, other string) string {
	t.Helper()
	var lines [2][]string
	for i, file := range []string{one, other} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = strings.Split(string(data), "\n")
	}
	for i := range min(len(lines[0]), len(lines[1])) {
		if lines[0][i] != lines[1][i] {
			return fmt.Sprintf("line %d is %q or %q", i+1, lines[0][i], lines[1][i])
		}
	}
	if len(lines[0]) != len(lines[1]) {
		return fmt.Sprintf("it has %d or %d lines", len(lines[0]), len(lines[1]))
	}
	return ""
}

// TestStories plays the stories that have broken a promise before it was mended.
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/simulate/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			seed, o := readStory(t, file)
			r := play(t, seed, o)
			if !slices.Equal(r.Steps, o.Script) {
				t.Errorf("%d of %d steps: %q", len(r.Steps), len(o.Script), r.Steps)
			}
			if r.Violation != nil {
				t.Errorf("%v\n%s", r.Violation, strings.Join(r.Story, "\n"))
			}
		})
	}
}

// readStory reads a story: its seed, its steps, and whether they go through the Redis layer.
func readStory(t *testing.T, file string) (seed uint64, o Options) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if number, is := strings.CutPrefix(line, "seed "); is {
			if seed, err = strconv.ParseUint(number, 10, 64); err != nil {
				t.Fatal(err)
			}
		} else if line == "redis" {
			o.Redis = true
		} else if line != "" && !strings.HasPrefix(line, "#") {
			o.Script = append(o.Script, line)
		}
	}
	return seed, o
}
