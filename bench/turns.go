package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The load: each scenario puts it on one server after the other, in turns, and compares what
// they did.

const (
	// noSlower is what a figure may be of that of the build before. It is no allowance to use
	// up: it is how far apart two runs of one build may be.
	noSlower = 1.05
	// quietEnough is how much of a processor others may use during a turn.
	quietEnough = 0.15
	// tries is how often a turn is made that others disturb, and patience for how long the bench
	// makes such turns again.
	tries    = 3
	patience = 30 * time.Minute
)

// bench runs the scenarios.
type bench struct {
	rig
	repeat     int
	only       string
	runs, rate int
	begun      time.Time
	missed     []string
}

func (b *bench) flags(fs *flag.FlagSet) {
	fs.IntVar(&b.repeat, "repeat", 5, "how often each server is measured, in turns")
	fs.StringVar(&b.only, "only", "", "only the scenarios whose names start with this")
	fs.IntVar(&b.runs, "runs", 0, "instead of the scenarios: this many runs at a time")
	fs.IntVar(&b.rate, "rate", 50, "tokens per second of each of the -runs")
	fs.StringVar(&b.since, "before", "",
		"the commit that is measured beside this one; without it, the last release, or, if there is none, the newest "+
			"commit that is older than a day; none for none")
}

func (b *bench) run() error {
	defer b.close()
	if err := b.open(); err != nil {
		return err
	}
	b.begun = time.Now()
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
	fmt.Printf("The load took %s.\n", time.Since(b.begun).Round(time.Second))
	if len(b.missed) > 0 {
		return errors.New("missed: " + strings.Join(b.missed, "; "))
	}
	return nil
}

// scenario measures the targets in turns, each time with a new process.
func (b *bench) scenario(s scenario) error {
	targets := b.targets(s)
	results := map[string][]*result{}
	for n := range max(b.repeat, s.turns) {
		for _, name := range targets {
			r, err := b.quietTurn(s, name, n)
			if err != nil {
				return err
			}
			results[name] = append(results[name], r)
		}
	}
	fmt.Printf("== %s: %s\n", s.name, s.about)
	for _, f := range s.figures {
		b.report(s, f, targets, results)
	}
	b.reportNoise(s, results)
	return nil
}

// targets are those of the scenario, each behind its build before.
func (b *bench) targets(s scenario) (all []string) {
	for _, name := range s.targets {
		if b.earlier != "" && name != onFloor {
			all = append(all, before+name)
		}
		all = append(all, name)
	}
	return all
}

// quietTurn measures one target once, and again if others have disturbed it.
func (b *bench) quietTurn(s scenario, name string, n int) (r *result, err error) {
	for again := range tries {
		r, err = b.turn(s, name, fmt.Sprintf("%s%d-%d", s.name, n, again))
		if err != nil || r.others <= quietEnough || time.Since(b.begun) > patience {
			break
		}
	}
	return r, err
}

// turn measures one target once.
func (b *bench) turn(s scenario, name, part string) (*result, error) {
	t, err := b.launch(name, part, s.agents)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	if s.before != nil {
		if err := s.before(t); err != nil {
			return nil, err
		}
	}
	noise, err := b.listen(t)
	if err != nil {
		return nil, err
	}
	r, err := s.run(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, t.out.String())
	}
	r.others, err = noise()
	return r, err
}

// report prints one figure of all targets, and compares it with its bars and with the build
// before.
func (b *bench) report(s scenario, f figure, targets []string, results map[string][]*result) {
	line := fmt.Sprintf("   %-32s", f.name)
	for _, name := range targets {
		line += fmt.Sprintf("  %s %.4g", name, f.value(results[name]))
	}
	fmt.Println(line)
	for _, name := range s.targets {
		if name == onFloor || f.rare {
			continue
		}
		line, held := b.judge(s, f, name, results)
		if line != "" {
			fmt.Printf("      %s: %s\n", name, line)
		}
		if !held {
			b.missed = append(b.missed, s.name+": "+f.name+", "+name)
		}
	}
}

// judge compares a figure of a target with its bar and with the build before.
func (b *bench) judge(s scenario, f figure, name string, results map[string][]*result) (line string, held bool) {
	var parts []string
	held = true
	check := func(text string, got, limit float64) {
		held = held && got <= limit
		parts = append(parts, fmt.Sprintf("%s, at most %g (%s)", text, limit, verdict(got <= limit)))
	}
	got := f.value(results[name])
	against := cmp.Or(s.against, onFloor)
	times := f.times(results[name], results[against])
	switch limit := f.limits[name]; {
	case f.added && limit > 0:
		check(fmt.Sprintf("%.2f more than the model alone", got-b.modelFirst), got-b.modelFirst, limit)
	case f.ratio && limit > 0:
		check(fmt.Sprintf("%.2f x %s", times.middle, against), times.middle, limit)
	case limit > 0:
		check(fmt.Sprintf("%.4g", got), got, limit)
	case len(results[against]) > 0 && name != against:
		parts = append(parts, fmt.Sprintf("%.2f x %s", times.middle, against))
	}
	if earlier := results[before+name]; len(earlier) > 0 {
		times := f.times(results[name], earlier)
		text := fmt.Sprintf("%.2f x before (%.2f to %.2f)", times.middle, times.least, times.most)
		if f.more {
			check(text+", 1/x", 1/times.middle, noSlower)
		} else {
			check(text, times.middle, noSlower)
		}
	}
	return strings.Join(parts, "; "), held
}

// reportNoise says what others have used of the machine. A scenario with turns that were
// disturbed each time they were made is no measurement.
func (b *bench) reportNoise(s scenario, results map[string][]*result) {
	var others []float64
	for _, all := range results {
		for _, r := range all {
			others = append(others, r.others)
		}
	}
	worst := slices.Max(others)
	fmt.Printf("   others used %.0f %% of a processor, in the worst turn %.0f %%, at most %.0f %% (%s)\n",
		100*median(others), 100*worst, 100*quietEnough, verdict(worst <= quietEnough))
	if worst > quietEnough {
		b.missed = append(b.missed, s.name+": the machine was too busy")
	}
}
