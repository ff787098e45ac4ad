package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/server"
)

// options are the program's settings: each is a flag and an environment
// variable of the same name, and the flag wins.
type options struct {
	addr        string
	store       string
	model       string
	recovery    string
	frequency   string
	lease       time.Duration
	maxRuns     int
	maxSteps    int
	demoDelay   time.Duration
	demoJournal string
	configFile  string
	apiKeys     string
	version     bool
}

func parseOptions(args []string, getenv func(string) string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("holdfast", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.addr, "addr", "localhost:8080", "where to listen (HOLDFAST_ADDR)")
	fs.StringVar(&o.store, "store", "bolt:./data/holdfast.db", "where threads are kept: bolt:PATH or memory: (HOLDFAST_STORE)")
	fs.StringVar(&o.model, "model", "demo", "the model: demo is scripted and needs no key (HOLDFAST_MODEL)")
	fs.StringVar(&o.recovery, "recover", "on", "on: runs cut off by a crash are continued; off: they wait for an empty-messages POST (HOLDFAST_RECOVER)")
	fs.StringVar(&o.frequency, "checkpoint-frequency", "per_iteration", "which checkpoints are listed: per_iteration, per_turn or manual (HOLDFAST_CHECKPOINT_FREQUENCY)")
	fs.DurationVar(&o.lease, "lease", 3*time.Second, "how long a silent process counts as alive (HOLDFAST_LEASE)")
	fs.IntVar(&o.maxRuns, "max-runs", 1000, "how many runs may run at a time; beyond it 503 (HOLDFAST_MAX_RUNS)")
	fs.IntVar(&o.maxSteps, "max-iterations", 50, "how many iterations a run gets between two requests (HOLDFAST_MAX_ITERATIONS)")
	fs.DurationVar(&o.demoDelay, "demo-delay", 20*time.Millisecond, "the demo model's pause between two words (HOLDFAST_DEMO_DELAY)")
	fs.StringVar(&o.demoJournal, "demo-journal", "", "a file that gets one line per model and tool call, to count after a kill -9; adds the tool charge_card (HOLDFAST_DEMO_JOURNAL)")
	fs.StringVar(&o.configFile, "config", "", "the file with the agents; default holdfast.yaml if it is there (HOLDFAST_CONFIG)")
	o.apiKeys = getenv("HOLDFAST_API_KEYS") // no flag: arguments are visible to everybody on the machine
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	var bad error
	fs.VisitAll(func(f *flag.Flag) {
		name := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v := getenv(name); v != "" && f.Name != "version" && bad == nil {
			if err := fs.Set(f.Name, v); err != nil {
				bad = fmt.Errorf("%s=%q cannot be used: %w", name, v, err)
			}
		}
	})
	if bad != nil {
		return nil, bad
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: holdfast takes only flags, see --help", fs.Arg(0))
	}
	return o, o.validate()
}

func (o *options) validate() error {
	if o.recovery != "on" && o.recovery != "off" {
		return fmt.Errorf("--recover=%s is not known: use on or off", o.recovery)
	}
	if o.model != "demo" {
		return fmt.Errorf("--model=%s is not known: use demo", o.model)
	}
	if o.maxRuns < 1 || o.maxSteps < 1 {
		return fmt.Errorf("--max-runs and --max-iterations must be at least 1")
	}
	return nil
}

// config makes the server's configuration. closeAll releases what it opened.
func (o *options) config(log *slog.Logger) (cfg server.Config, closeAll func(), err error) {
	closeAll = func() {}
	var journal io.Writer
	if o.demoJournal != "" {
		f, err := os.OpenFile(o.demoJournal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return cfg, closeAll, fmt.Errorf("open the demo journal: %w", err)
		}
		journal = f
		closeAll = func() {
			if err := f.Close(); err != nil {
				log.Warn("the demo journal could not be closed", "error", err)
			}
		}
	}
	agents, limits, err := o.configured(journal)
	if err != nil {
		return cfg, closeAll, err
	}
	authenticate, err := o.authenticate()
	if err != nil {
		return cfg, closeAll, err
	}
	return server.Config{
		Addr: o.addr, Store: o.store, NoRecovery: o.recovery == "off", CheckpointFrequency: o.frequency,
		Lease: o.lease, MaxRuns: o.maxRuns, MaxIterations: o.maxSteps, Log: log,
		Agents: agents, Limits: limits, Authenticate: authenticate,
	}, closeAll, nil
}

// banner says in a few lines what the server runs on.
func (o *options) banner(w io.Writer, addr string) {
	recovery := "on: runs cut off by a crash are continued"
	if o.recovery == "off" {
		recovery = "off: runs cut off by a crash wait for an empty-messages POST"
	}
	fmt.Fprintf(w, `holdfast %s
  listening   http://%s  (loopback only: no API keys are set)
  store       %s
  model       demo: scripted, no API key needed; say "help"
  recovery    %s; checkpoints %s
`, version(), strings.Replace(addr, "127.0.0.1", "localhost", 1), storeText(o.store), recovery, o.frequency)
}

func storeText(store string) string {
	if path, ok := strings.CutPrefix(store, "bolt:"); ok {
		return path + "  (embedded; every commit is synced to disk)"
	}
	return "memory  (nothing survives the process)"
}
