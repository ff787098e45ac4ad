package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"strings"
)

// The load: each scenario puts it on one server after the other, in turns, and compares the
// medians.

// bench runs the scenarios.
type bench struct {
	rig
	repeat     int
	only       string
	runs, rate int
	missed     []string
}

func (b *bench) flags(fs *flag.FlagSet) {
	fs.IntVar(&b.repeat, "repeat", 3, "how often each server is measured, in turns; medians are compared")
	fs.StringVar(&b.only, "only", "", "only the scenarios whose names start with this")
	fs.IntVar(&b.runs, "runs", 0, "instead of the scenarios: this many runs at a time")
	fs.IntVar(&b.rate, "rate", 50, "tokens per second of each of the -runs")
}

func (b *bench) run() error {
	defer b.close()
	if err := b.open(); err != nil {
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
	results := map[string][]*result{}
	for n := range max(b.repeat, s.turns) {
		for _, name := range s.targets {
			r, err := b.turn(s, name, n)
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

// turn measures one target once.
func (b *bench) turn(s scenario, name string, n int) (*result, error) {
	t, err := b.launch(name, fmt.Sprintf("%s%d", s.name, n), s.agents)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	if s.before != nil {
		if err := s.before(t); err != nil {
			return nil, err
		}
	}
	r, err := s.run(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, t.out.String())
	}
	return r, nil
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
		if got > f.limit {
			b.missed = append(b.missed, fmt.Sprintf("%s: %s is %.4g, at most %g", s.name, f.name, got, f.limit))
		}
		line += fmt.Sprintf("  (%s %g: %s)", what, f.limit, verdict(got <= f.limit))
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
