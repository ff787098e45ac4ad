package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// keep is a middleware that keeps a state: it reads it before each iteration, and
// changes it after.
func keep[T any](key *state.Key[T], next func(T) T) holdfast.Middleware {
	return holdfast.Middleware{
		Name: key.StateName() + "_keeper", States: []holdfast.State{key},
		BeforeIteration: func(ctx context.Context, _ *holdfast.Iteration) error {
			_, err := key.Load(ctx)
			return err
		},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
			if _, err := key.Update(ctx, next); err != nil {
				fmt.Println(err)
			}
		},
	}
}

type tone struct {
	Formal bool `json:"formal"`
}

var (
	greetingState = state.Register(state.Spec[tone]{Name: "acme.greeting"})
	toneState     = state.Register(state.Spec[tone]{Name: "acme.tone"})
	// mailUnmigrated and mailBroken are version 2 of the state: one without a migration,
	// one with a migration that fails.
	mailUnmigrated = state.Register(state.Spec[MailV2]{Name: "acme.mail", Version: 2})
	mailBroken     = state.Register(state.Spec[MailV2]{Name: "acme.mail", Version: 2,
		Migrations: map[int]state.Migration{
			1: state.Migrate(func(MailV1) (MailV2, error) { return MailV2{}, errors.New("who was it sent to?") }),
		}})
)

// deploymentA and deploymentB are the middleware of an agent in two versions of a
// program.
func deploymentA() []holdfast.Middleware {
	return []holdfast.Middleware{
		keep(mailState, func(m Mail) Mail { return Mail{m.Sent + 1} }),
		keep(greetingState, func(tone) tone { return tone{true} }),
	}
}

func deploymentB() []holdfast.Middleware {
	return []holdfast.Middleware{
		keep(mailV3, func(m MailV3) MailV3 { return m }),
		keep(toneState, func(tone) tone { return tone{true} }),
	}
}

// Several deployments continue one thread: A, then B, then A again. Of the log, only
// the lines about states are printed.
func Example_deployments() {
	d := &deployments{store: memstore.New()}
	d.deploy("A", server.Config{}, deploymentA())
	d.needed("B", deploymentB())
	d.deploy("B", server.Config{}, deploymentB())
	d.needed("A again", deploymentA())
	d.deploy("A again", server.Config{}, deploymentA())
	d.deploy("A with --on-newer-state=reset", server.Config{ResetNewerStates: true}, deploymentA())
	d.stored()
	d.deploy("B again", server.Config{}, deploymentB())
	// Output:
	// # A
	// {"state":null,"middlewareState":{"schemaSignature":"acme.greeting,acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":1},"states":{"acme.greeting":{"formal":true},
	//     "acme.mail":{"sent":1}}}}
	// # check before B
	// default/t: acme.mail will be migrated from 1 to 3
	// # B
	// level=WARN msg="the checkpoint has the state of middleware that is not here any more; it is kept,
	//     and nobody reads it (expected after a middleware was removed)" thread=t run=r2 iteration=0 count=1
	//     states=greeting
	// level=INFO msg="there is middleware that the checkpoint does not know; its state begins with the
	//     initial value" thread=t run=r2 iteration=0 count=1 states=tone
	// level=INFO msg="a state has another version than in the checkpoint" thread=t run=r2 iteration=0
	//     state=mail from=1 to=3
	// {"type":"CUSTOM","name":"holdfast.schema_changed","value":{"isUpgrade":false,
	//     "oldSignature":"acme.greeting,acme.mail","newSignature":"acme.mail,acme.tone",
	//     "removed":["acme.greeting"],"added":["acme.tone"],"changed":[{"name":"acme.mail","from":1,"to":3}],
	//     "timestamp":"2026-01-31T12:00:00.000Z"},"timestamp":"2026-01-31T12:00:00.000Z"}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.mail,acme.tone","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":3,"acme.tone":1},
	//     "states":{"acme.greeting":{"formal":true},"acme.mail":{"byAddress":{"unknown":1}},
	//     "acme.tone":{"formal":true}}}}
	// # check before A again
	// default/t: acme.mail is version 3, newer than 1
	// # A again
	// {"error":{"code":"state_too_new","message":"The state \"acme.mail\" has version 3, but this server
	//     knows it only up to version 1.","hint":"It was left as it is. Run a version that knows it, or start
	//     with --on-newer-state=reset to reset that state and keep its newer value aside.",
	//     "details":{"known":1,"state":"acme.mail","version":3}}}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.mail,acme.tone","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":3,"acme.tone":1},
	//     "states":{"acme.greeting":{"formal":true},"acme.mail":{"byAddress":{"unknown":1}},
	//     "acme.tone":{"formal":true}}}}
	// # A with --on-newer-state=reset
	// level=WARN msg="the checkpoint has the state of middleware that is not here any more; it is kept,
	//     and nobody reads it (expected after a middleware was removed)" thread=t run=r4 iteration=0 count=1
	//     states=tone
	// level=INFO msg="there is middleware that the checkpoint does not know; its state begins with the
	//     initial value" thread=t run=r4 iteration=0 count=1 states=greeting
	// level=INFO msg="a state has another version than in the checkpoint" thread=t run=r4 iteration=0
	//     state=mail from=3 to=1
	// {"type":"CUSTOM","name":"holdfast.schema_changed","value":{"isUpgrade":false,
	//     "oldSignature":"acme.mail,acme.tone","newSignature":"acme.greeting,acme.mail",
	//     "removed":["acme.tone"],"added":["acme.greeting"],"changed":[{"name":"acme.mail","from":3,"to":1}],
	//     "timestamp":"2026-01-31T12:00:00.000Z"},"timestamp":"2026-01-31T12:00:00.000Z"}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.greeting,acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":1,"acme.tone":1},
	//     "states":{"acme.greeting":{"formal":true},"acme.mail":{"sent":1},"acme.tone":{"formal":true}},
	//     "newerStates":{"acme.mail":{"version":3,"data":{"byAddress":{"unknown":1}}}}}}
	// # stored
	// sig: "KDzbvi3"
	// states: {"acme.greeting":{"formal":true},"acme.mail":{"sent":1},"acme.tone":{"formal":true}}
	// stateVersions: {"acme.tone":1}
	// newerStates: {"acme.mail":{"version":3,"data":{"byAddress":{"unknown":1}}}}
	// schema/TSIm38t, 105 bytes: {"schemaSignature":"acme.mail,acme.tone","schemaVersion":1,
	//     "stateVersions":{"acme.mail":3,"acme.tone":1}}
	// schema/KDzbvi3, 113 bytes: {"schemaSignature":"acme.greeting,acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":1}}
	// # B again
	// level=WARN msg="the checkpoint has the state of middleware that is not here any more; it is kept,
	//     and nobody reads it (expected after a middleware was removed)" thread=t run=r5 iteration=0 count=1
	//     states=greeting
	// level=INFO msg="there is middleware that the checkpoint does not know; its state begins with the
	//     initial value" thread=t run=r5 iteration=0 count=1 states=tone
	// level=INFO msg="a state has another version than in the checkpoint" thread=t run=r5 iteration=0
	//     state=mail from=1 to=3
	// {"type":"CUSTOM","name":"holdfast.schema_changed","value":{"isUpgrade":false,
	//     "oldSignature":"acme.greeting,acme.mail","newSignature":"acme.mail,acme.tone",
	//     "removed":["acme.greeting"],"added":["acme.tone"],"changed":[{"name":"acme.mail","from":1,"to":3}],
	//     "timestamp":"2026-01-31T12:00:00.000Z"},"timestamp":"2026-01-31T12:00:00.000Z"}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.mail,acme.tone","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":3,"acme.tone":1},
	//     "states":{"acme.greeting":{"formal":true},"acme.mail":{"byAddress":{"unknown":1}},
	//     "acme.tone":{"formal":true}}}}
}

// A thread that was written without states is continued by an agent that has some.
func Example_deploymentsOlder() {
	d := &deployments{store: memstore.New()}
	d.deploy("without states", server.Config{}, nil)
	d.deploy("A", server.Config{}, deploymentA())
	// Output:
	// # without states
	// {"state":null}
	// # A
	// level=INFO msg="resuming from a checkpoint that is older than schema versioning; it is upgraded to
	//     the current schema" thread=t run=r2 iteration=0
	// {"type":"CUSTOM","name":"holdfast.schema_changed","value":{"isUpgrade":true,"oldSignature":"",
	//     "newSignature":"acme.greeting,acme.mail","removed":[],"added":[],"changed":[],
	//     "timestamp":"2026-01-31T12:00:00.000Z"},"timestamp":"2026-01-31T12:00:00.000Z"}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.greeting,acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":1},"states":{"acme.greeting":{"formal":true},
	//     "acme.mail":{"sent":1}}}}
}

// A state whose migration is missing, and one whose migration fails.
func Example_deploymentsMigration() {
	d := &deployments{store: memstore.New()}
	d.deploy("A", server.Config{}, deploymentA()[:1])
	broken := []holdfast.Middleware{keep(mailBroken, func(m MailV2) MailV2 { return m })}
	d.deploy("a migration that fails", server.Config{}, broken)
	unmigrated := []holdfast.Middleware{keep(mailUnmigrated, func(m MailV2) MailV2 { return m })}
	d.needed("no migration", unmigrated)
	d.deploy("no migration", server.Config{}, unmigrated)
	// Output:
	// # A
	// {"state":null,"middlewareState":{"schemaSignature":"acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.mail":1},"states":{"acme.mail":{"sent":1}}}}
	// # a migration that fails
	// level=INFO msg="a state has another version than in the checkpoint" thread=t run=r2 iteration=0
	//     state=mail from=1 to=2
	// level=WARN msg="run failed" thread=t run=r2 iteration=0 code=state_migration_failed
	//     error="state_migration_failed: The migration of state \"acme.mail\" from version 1 to 2 failed
	//     (stored: 1, needed: 2).: who was it sent to?"
	// {"type":"CUSTOM","name":"holdfast.schema_changed","value":{"isUpgrade":false,
	//     "oldSignature":"acme.mail","newSignature":"acme.mail","removed":[],"added":[],
	//     "changed":[{"name":"acme.mail","from":1,"to":2}],"timestamp":"2026-01-31T12:00:00.000Z"},
	//     "timestamp":"2026-01-31T12:00:00.000Z"}
	// {"type":"RUN_ERROR","message":"This service was updated and cannot continue this conversation yet.
	//     Nothing was changed. Tell the people who run this service.","code":"state_migration_failed",
	//     "timestamp":"2026-01-31T12:00:00.000Z","metadata":{"holdfast":{"hint":"The migration of state
	//     \"acme.mail\" from version 1 to 2 failed (stored: 1, needed: 2). Nothing was changed. Fix the
	//     migration and try again."}}}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.mail":1},"states":{"acme.mail":{"sent":1}}}}
	// # check before no migration
	// default/t: acme.mail has no migration from 1 to 2
	// # no migration
	// level=WARN msg="a stored state has no migration and is read with defaults" thread=t state=acme.mail
	//     from=1 to=2
	// level=WARN msg="run failed" thread=t run=r3 iteration=0 code=state_unreadable
	//     error="state_unreadable: The state \"acme.mail\" is stored as number in sent, but
	//     holdfast_test.MailV2 is expected.: json: cannot unmarshal number into Go struct field MailV2.sent
	//     of type map[string]int"
	// {"type":"RUN_ERROR","message":"This service was updated and cannot continue this conversation yet.
	//     Nothing was changed. Tell the people who run this service.","code":"state_unreadable",
	//     "timestamp":"2026-01-31T12:00:00.000Z","metadata":{"holdfast":{"hint":"The state \"acme.mail\" is
	//     stored as number in sent, but holdfast_test.MailV2 is expected. It was left as it is. If its type
	//     has changed, raise its version and add a migration."}}}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.mail":1},"states":{"acme.mail":{"sent":1}}}}
}

// In fail mode, a run is refused before anything is written.
func Example_deploymentsFail() {
	d := &deployments{store: memstore.New()}
	d.deploy("A", server.Config{}, deploymentA())
	d.deploy("B with --schema-changes=fail", server.Config{SchemaChanges: "fail"}, deploymentB())
	// Output:
	// # A
	// {"state":null,"middlewareState":{"schemaSignature":"acme.greeting,acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":1},"states":{"acme.greeting":{"formal":true},
	//     "acme.mail":{"sent":1}}}}
	// # B with --schema-changes=fail
	// {"error":{"code":"schema_changed","message":"The thread was written with other middleware states
	//     than this server has (removed: greeting; added: tone; other version: mail).","hint":"Nothing was
	//     changed. Run the version that wrote it, or start with --schema-changes=warn.",
	//     "details":{"added":["acme.tone"],"changed":["acme.mail"],"removed":["acme.greeting"]}}}
	// {"state":null,"middlewareState":{"schemaSignature":"acme.greeting,acme.mail","schemaVersion":1,
	//     "stateVersions":{"acme.greeting":1,"acme.mail":1},"states":{"acme.greeting":{"formal":true},
	//     "acme.mail":{"sent":1}}}}
}

// deployments are programs that run one after another on one store.
type deployments struct {
	store store.Store
	runs  int
}

// deploy starts a program, gets a message answered, and prints what the program says
// about states.
func (d *deployments) deploy(name string, cfg server.Config, middleware []holdfast.Middleware) {
	fmt.Println("#", name)
	var log bytes.Buffer
	cfg.OpenStore, cfg.Log = unclosed{
		d.store,
	}.open, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	cfg.Agents = []holdfast.Agent{{Name: "helper", Model: holdfast.ModelFunc(hello), Middleware: middleware}}
	s, err := server.New(cfg)
	if err == nil {
		err = s.StartEngine(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	h := httptest.NewServer(s.Handler())
	answer := d.post(h.URL)
	state := answered(http.Get(h.URL + "/threads/t/state"))
	h.Close()
	if err := s.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(log.String()) {
		if (strings.Contains(line, "state") || strings.Contains(line, "schema")) && !strings.Contains(line, "took=") {
			printWrapped(line)
		}
	}
	printWrapped(answer)
	printWrapped(state)
}

// printWrapped prints lines that fit into a comment: one of more than 100 characters is broken
// after a comma or at a space, and goes on indented.
func printWrapped(text string) {
	const most = 100
	for line := range strings.Lines(text) {
		line, indent := strings.TrimSuffix(line, "\n"), ""
		for len(line) > most {
			end := strings.LastIndexAny(line[:most], ", ") + 1
			if end == 0 {
				break
			}
			fmt.Println(indent + strings.TrimSuffix(line[:end], " "))
			line, indent = line[end:], "    "
		}
		fmt.Println(indent + line)
	}
}

// hello is a model that says one word.
func hello(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		yield(holdfast.Delta{Text: "Hello.", Finish: holdfast.FinishStop}, nil)
	}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

var times = regexp.MustCompile(`"timestamp":("[^"]*"|\d+)`)

// post sends a message and returns the error or the record about the schema.
func (d *deployments) post(url string) string {
	d.runs++
	body := fmt.Sprintf(`{"threadId":"t","runId":"r%d","messages":[{"id":"m%d","role":"user","content":"Good `+
		`day."}],"forwardedProps":{"holdfast":{"onUnfinished":"abandon"}}}`, d.runs, d.runs)
	answer := answered(http.Post(url+"/runs", "application/json", strings.NewReader(body)))
	var said strings.Builder
	for line := range strings.Lines(answer) {
		line = strings.TrimPrefix(line, "data: ")
		if strings.Contains(line, "schema_changed") || strings.Contains(line, `"RUN_ERROR"`) ||
			strings.HasPrefix(line, `{"error"`) {
			said.WriteString(times.ReplaceAllString(line, `"timestamp":"2026-01-31T12:00:00.000Z"`))
		}
	}
	return said.String()
}

func answered(res *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b)) + "\n"
}

// needed prints what a check before the deployment finds.
func (d *deployments) needed(name string, middleware []holdfast.Middleware) {
	fmt.Println("# check before", name)
	agents := []holdfast.Agent{{Name: "helper", Middleware: middleware}}
	if err := needs(d.store, agents); err != nil {
		fmt.Println(err)
	}
}

// needs prints which states of which threads have another version than these agents.
func needs(db store.Store, agents []holdfast.Agent) error {
	return offline.CheckStates(context.Background(), db, agents, nil,
		func(thread store.ThreadKey, states []state.PendingMigration) {
			for _, s := range states {
				switch {
				case s.From > s.To:
					fmt.Printf("%s: %s is version %d, newer than %d\n", thread, s.Name, s.From, s.To)
				case s.Missing > 0:
					fmt.Printf("%s: %s has no migration from %d to %d\n", thread, s.Name, s.Missing, s.Missing+1)
				default:
					fmt.Printf("%s: %s will be migrated from %d to %d\n", thread, s.Name, s.From, s.To)
				}
			}
		})
}

// stored prints what the newest checkpoint says about middleware, and the schemas of
// the thread.
func (d *deployments) stored() {
	fmt.Println("# stored")
	ctx, key := context.Background(), store.ThreadKey{Tenant: "default", Thread: "t"}
	checkpoints, err := d.store.Values(ctx, key, store.KindCheckpoint, "", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	var cp struct{ State map[string]json.RawMessage }
	if err := json.Unmarshal(checkpoints[0].Data, &cp); err != nil {
		fmt.Println(err)
		return
	}
	for _, member := range []string{"sig", "states", "stateVersions", "newerStates"} {
		printWrapped(fmt.Sprintf("%s: %s", member, cp.State[member]))
	}
	blobs, err := d.store.Values(ctx, key, store.KindBlob, "", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range blobs {
		printWrapped(fmt.Sprintf("%s, %d bytes: %s", v.ID, len(v.Data), v.Data))
	}
}

// unclosed is a store that outlives the servers that use it.
type unclosed struct{ store.Store }

// Close leaves the store open.
func (unclosed) Close() error { return nil }

func (u unclosed) open() (store.Store, error) { return u, nil }
