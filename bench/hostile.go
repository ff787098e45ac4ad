package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// Hostile: how long the runs of one tenant take, and whether the server is ready, while
// another tenant has hundreds of requests open that are made to keep it busy, and how long
// it takes to end then. A server of its own process is measured; each crowd is a kind of
// such requests, and a new kind is one more row of attacks.

// The bars: the 99th percentile of the quiet tenant's runs, as for fairness, readiness, and
// the time from SIGTERM to the end of the process.
const (
	readyBar = time.Second
	endBar   = server.GracePeriod
)

// hostile is the load.
type hostile struct {
	runs    int // of the quiet tenant in each phase
	clients int // of the crowd
	only    string
}

func (h *hostile) flags(fs *flag.FlagSet) {
	fs.IntVar(&h.runs, "quiet-runs", 400,
		"with -hostile: how many runs of the quiet tenant are measured, without and with the crowd")
	fs.IntVar(&h.clients, "crowd", 400, "with -hostile: how many requests of the crowd are open at a time")
}

// attack is a kind of clients that want to keep a server busy. client is one of them, until ctx
// is done.
type attack struct {
	name   string
	client func(ctx context.Context, url string, n int)
}

func attacks() []attack {
	return []attack{{"schemas", answersWithSchemas}}
}

// run measures each crowd on both stores.
func (h *hostile) run() error {
	redis, err := startRedis("everysec")
	if err != nil {
		return err
	}
	defer redis.stop()
	fmt.Println("| store | crowd | alone: p50 / p99 / most | beside | readiness, most | SIGTERM to the end | |")
	fmt.Println("|---|---|---|---|---|---|---|")
	all := attacks()
	var names []string
	for _, a := range all {
		names = append(names, a.name)
	}
	return onBothStores("hostile", h.only, redis, names, func(p *process, n int) (measure, error) {
		return h.against(p, all[n])
	})
}

// crowd is the process of a crowd. It says when the clients have begun, and ends with its input.
func (h *hostile) crowd(url string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for _, a := range attacks() {
		if a.name != h.only {
			continue
		}
		var all sync.WaitGroup
		for n := range h.clients {
			all.Go(func() { a.client(ctx, url, n) })
		}
		fmt.Println("begun")
		_, err := io.Copy(io.Discard, os.Stdin)
		stop()
		all.Wait()
		return err
	}
	return fmt.Errorf("there is no attack %q", h.only)
}

// hostileMeasure is what a crowd does to others.
type hostileMeasure struct {
	quiet, beside, ready []time.Duration
	end                  time.Duration
}

func (m *hostileMeasure) held() bool {
	return fair(m.quiet, m.beside) && slices.Max(m.ready) <= readyBar && m.end <= endBar
}

// String is a row of the table in docs/benchmarks.md.
func (m *hostileMeasure) String() string {
	return fmt.Sprintf("%s | %s | %.1f ms | %.1f s | %s", spread(m.quiet), spread(m.beside), ms(slices.Max(m.ready)),
		m.end.Seconds(), verdict(m.held()))
}

// against measures the quiet tenant alone, then beside a crowd, and then the server's end.
func (h *hostile) against(p *process, c attack) (m *hostileMeasure, err error) {
	m = &hostileMeasure{}
	if m.quiet, _, err = h.quiet(p.url, "alone"); err != nil {
		return nil, err
	}
	stop, err := startCrowd(c.name, p.url, h.clients)
	if err != nil {
		return nil, err
	}
	m.beside, m.ready, err = h.quiet(p.url, "beside")
	if err == nil {
		began := time.Now()
		err = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait() // its exit code may say that it has cut something off
		m.end = time.Since(began)
	}
	return m, errors.Join(err, stop())
}

// quiet makes the quiet tenant's runs, four at a time, and asks in between whether the server
// is ready. It returns how long each took.
func (h *hostile) quiet(url, part string) (runs, ready []time.Duration, err error) {
	for n := 0; len(runs) < h.runs; n++ {
		took, err := fourRuns(url, part, n)
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, took...)
		began := time.Now()
		res, err := http.Get(url + "/readyz")
		if err != nil {
			return nil, nil, err
		}
		res.Body.Close()
		ready = append(ready, time.Since(began))
	}
	return runs, ready, nil
}

// pause is how long a client of a crowd waits before it tries again. Without it a fixed server
// would be measured under as many requests as one machine can send, which is another question.
const pause = 10 * time.Second

// answersWithSchemas answers questions with arguments and schemas that take long to check.
func answersWithSchemas(ctx context.Context, url string, n int) {
	for round := 0; ctx.Err() == nil; round++ {
		if round > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		schema, arguments := hostileSchema(n + round)
		tools := fmt.Sprintf(`"tools":[{"name":"f","description":"x","parameters":%s}]`, schema)
		id := fmt.Sprintf("hostile-%d-%d", n, round)
		_, text, err := post(ctx, url, tenantLoud,
			fmt.Sprintf(`{"threadId":%q,"runId":"r1",%s,"messages":[{"id":"u","role":"user","content":"use f"}]}`, id,
				tools))
		_, question, asked := strings.Cut(text, `"interrupts":[{"id":"`)
		if err != nil || !asked {
			continue
		}
		question, _, _ = strings.Cut(question, `"`)
		_, _, _ = post(ctx, url, tenantLoud, fmt.Sprintf(
			`{"threadId":%q,"runId":"r2",%s,"messages":[],"resume":[{"interruptId":%q,"status":"resolved",`+
				`"payload":{"approved":true,"editedArgs":%s}}]}`,
			id,
			tools,
			question,
			arguments,
		))
	}
}

// hostileSchema returns one of several schemas that once kept a server busy, and arguments for
// it.
func hostileSchema(n int) (schema, arguments string) {
	list := func(n int, text func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = text(i)
		}
		return strings.Join(parts, ",")
	}
	switch n % 5 {
	case 0:
		return fmt.Sprintf(`{"type":"object","$defs":{%s,"a40":{"type":"object"}},"allOf":[{"$ref":"#/$defs/a0"}]}`,
			list(40, func(i int) string {
				return fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i+1, i+1)
			})), `{}`
	case 1:
		return `{"type":"object","$defs":{"n":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},` +
				`{"properties":{"a":{"$ref":"#/$defs/n"}}}]}},"allOf":[{"$ref":"#/$defs/n"}]}`,
			strings.Repeat(`{"a":`, 22) + "{}" + strings.Repeat("}", 22)
	case 2:
		return `{"type":"object","properties":{"l":{"uniqueItems":true}}}`,
			`{"l":[` + list(30_000, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) }) + `]}`
	case 3:
		return `{"type":"object","properties":{"e":{"enum":[` +
			list(100_000, func(i int) string { return fmt.Sprint(i) }) + `]}}}`, `{"e":"x"}`
	}
	return `{"type":"object","properties":{"x":{"items":{"pattern":"(([a-z]{10}){10}x?){9}$"}}}}`, `{"x":["` +
		strings.Repeat("abcdefghij", 6_000) + `"]}`
}

// serveHostile is the server that is measured. It asks a person about every call.
func serveHostile(addr, storeURL string) error {
	cfg := tenantsServer(storeURL, holdfast.Agent{
		Name:       "words",
		Model:      holdfast.ModelFunc(wordsOrCall),
		Middleware: []holdfast.Middleware{{Name: "bench.asks", Batch: asksAboutCalls}},
	})
	cfg.Addr = addr
	return server.ListenAndServe(cfg)
}

func asksAboutCalls(_ context.Context, b *holdfast.Batch) error {
	for i := range b.Calls {
		b.Ask(i, &holdfast.Interrupt{
			Reason:  holdfast.ReasonToolCall,
			Message: "May it?",
			ResponseSchema: []byte(`{"type":"object","required":["approved"],` +
				`"properties":{"approved":{"type":"boolean"},` +
				`"editedArgs":{"type":"object"}}}`),
		})
	}
	return nil
}

// wordsOrCall says words, or calls f if that is what the user says.
func wordsOrCall(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	if last := req.Messages[len(req.Messages)-1]; last.Text != "use f" {
		return words(ctx, req)
	}
	return func(yield func(holdfast.Delta, error) bool) {
		_ = yield(holdfast.Delta{Call: &holdfast.CallDelta{ID: "c1", Name: "f", Arguments: "{}"}}, nil) &&
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
	}
}
