// Package archtest holds the architecture's rules as tests: imports point one
// way, and each package may use only the libraries it is there for.
package archtest

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-agents/holdfast"

// rule says what a package of ours may import.
type rule struct {
	// ours are the packages of this module, without the module's path; "" is the
	// root package.
	ours []string
	// libraries are the modules from elsewhere, by prefix.
	libraries []string
	why       string
}

// rules has every package that is compiled into the server. A package that is
// not here fails the test: decide first what it may know.
var rules = map[string]rule{
	"": {
		ours: []string{"access", "codes", "failure", "secret", "sharedstate", "internal/schema"},
		why:  "the root package is the vocabulary; extension authors must be able to read all of it",
	},
	"agenttest": {
		ours: []string{
			"",
			"access",
			"activity",
			"state",
			"store",
			"threads",
			"server",
			"offline",
			"internal/agui",
			"internal/memstore",
			"internal/testkit/process",
		},
		why: "agenttest runs the server that is shipped, as a client would: agui reads what it says, memstore is " +
			"where it keeps threads, process is what dies",
	},
	"agenttest/storetest": {
		ours:      []string{"", "store"},
		libraries: []string{"pgregory.net/rapid"},
		why:       "a store's author runs the suite from outside",
	},
	"activity": {ours: []string{""},
		why: "activity is what tools and hooks show; who shows it is the server's business"},
	"access": {why: "access is a list of roles and actions, and one rule"},
	"sharedstate": {
		ours: []string{"internal/schema"},
		why:  "sharedstate is what an agent says of a document; the root package refers to it",
	},
	"apikey": {
		ours: []string{"", "access", "codes", "internal/headers"},
		why:  "apikey reads a header and a list of hashes; it knows no routes and no stores",
	},
	"jwtauth": {
		ours:      []string{"", "access", "codes", "internal/headers", "internal/netguard"},
		libraries: []string{"github.com/go-jose/go-jose"},
		why:       "jwtauth reads a header and a set of keys; it knows no routes and no stores",
	},
	"codes":   {why: "codes is a list of constants"},
	"failure": {why: "failure is a list of constants"},
	"state": {
		ours: []string{"", "codes"},
		why:  "state is what authors of middleware need for their states",
	},
	"store": {
		ours: []string{""},
		why:  "store is the contract: whoever writes a store reads it, and nothing else",
	},
	"threads": {ours: []string{""}, why: "threads is what callers are shown of a thread"},
	"observe": {
		ours: []string{"", "failure", "state", "store", "threads"},
		why:  "whoever observes an engine needs its words and nothing else",
	},
	"internal/schema": {
		libraries: []string{
			"github.com/google/jsonschema-go",
			"github.com/santhosh-tekuri/jsonschema",
			"golang.org/x/text",
		},
		why: "schema is a leaf",
	},
	"internal/frame": {
		ours:      []string{"", "store"},
		libraries: []string{"github.com/klauspost/compress"},
		why:       "frame is a leaf",
	},
	"credential": {
		ours: []string{"", "secret", "internal/netguard", "internal/secrets"},
		why:  "credential is an interface and a transport; where credentials come from is its user's business",
	},
	"idempotency": {ours: []string{""}, why: "idempotency is a transport"},
	"secret":      {why: "secret is a leaf"},
	"contract":    {ours: []string{"", "internal/schema"}, why: "contract makes tools of the public API"},
	"webhook": {
		ours: []string{"", "idempotency", "secret", "internal/headers"},
		why:  "webhook is a function for a contract of the public API; it knows no server",
	},
	"internal/stores": {
		ours: []string{"store", "internal/filestore", "internal/memstore", "internal/redisstore"},
		why:  "a URL means the same store to the server and to the offline commands",
	},
	"offline": {
		ours: []string{
			"",
			"state",
			"store",
			"threads",
			"server",
			"internal/audit",
			"internal/clock",
			"internal/dataformat",
			"internal/filestore",
			"internal/memstore",
			"internal/operator",
			"internal/owner",
			"internal/stores",
			"internal/thread",
		},
		why: "offline is audit for programs; only a replay needs a server, which runs in a copy",
	},
	"internal/clock": {why: "clock is a leaf: two types, and ids that are ordered by time"},
	"internal/headers": {
		ours: []string{""},
		why:  "headers is a leaf that everybody shares who reads or sends requests",
	},
	"internal/routine":  {why: "routine is a leaf: it knows goroutines, and nothing of what they do"},
	"internal/storekit": {ours: []string{"", "store"}, why: "storekit is a leaf that the stores share"},
	"internal/operator": {
		ours: []string{"internal/headers"},
		why:  "operator is a file in a store's directory, and a request",
	},
	"internal/secrets": {
		ours: []string{"secret"},
		why:  "secrets is a leaf that everybody who sends credentials shares",
	},
	"internal/netguard": {why: "netguard is a leaf: which addresses are private is a question for many"},
	"internal/turns": {
		ours: []string{"", "internal/clock"},
		why:  "turns is a leaf: whose turn it is says a caller, and nothing else",
	},
	"internal/pace": {why: "pace is a leaf: it knows when calls were refused, and calls nothing"},
	"internal/circuit": {
		ours: []string{"failure", "store", "internal/routine"},
		why:  "circuits know what models are called and how their calls ended; they call no model",
	},
	"internal/quota": {
		ours: []string{"", "codes", "store", "internal/clock", "internal/routine", "internal/thread"},
		why:  "quota counts what it is told, in memory and in the ledger; it knows no runs and no HTTP",
	},
	"internal/strictjson": {why: "strictjson is a leaf"},
	"internal/jsonpatch":  {why: "jsonpatch is a leaf"},
	"internal/predict":    {why: "predict is a leaf"},
	"internal/origins":    {why: "origins is a leaf"},
	"internal/agui": {
		ours: []string{"", "codes", "failure", "internal/strictjson"},
		why:  "agui is the protocol and nothing else: no I/O, no stores, no HTTP",
	},
	"internal/aisdk": {
		ours: []string{"", "codes", "threads", "internal/agui", "internal/jsonpatch", "internal/strictjson",
			"internal/thread"},
		why: "aisdk is another protocol in the words of agui, and nothing else; of threads it knows " +
			"what marks on results mean",
	},
	"internal/thread": {
		ours: []string{
			"",
			"codes",
			"state",
			"store",
			"threads",
			"internal/agui",
			"internal/jsonpatch",
			"internal/prompt",
			"internal/strictjson",
		},
		libraries: []string{"github.com/evanphx/json-patch"},
		why:       "thread is what a store holds of a thread: it reads and writes values, and decides nothing",
	},
	"internal/dataformat": {
		ours: []string{"store", "internal/thread"},
		why:  "dataformat is one question to a store: what is written",
	},
	"internal/loop": {
		ours: []string{
			"",
			"failure",
			"access",
			"activity",
			"codes",
			"secret",
			"sharedstate",
			"state",
			"store",
			"threads",
			"observe",
			"internal/agents",
			"internal/agui",
			"internal/clock",
			"internal/dataformat",
			"internal/decide",
			"internal/fallback",
			"internal/headers",
			"internal/hooks",
			"internal/journal",
			"internal/jsonpatch",
			"internal/pace",
			"internal/predict",
			"internal/prompt",
			"internal/quota",
			"internal/routine",
			"internal/thread",
			"internal/turns",
		},
		why: "a run knows no HTTP, no particular store and no metrics; and never who owns its thread",
	},
	"internal/owner": {
		ours: []string{
			"",
			"access",
			"activity",
			"codes",
			"observe",
			"sharedstate",
			"state",
			"store",
			"threads",
			"internal/agents",
			"internal/agui",
			"internal/clock",
			"internal/dataformat",
			"internal/decide",
			"internal/headers",
			"internal/hooks",
			"internal/journal",
			"internal/jsonpatch",
			"internal/loop",
			"internal/pin",
			"internal/quota",
			"internal/routine",
			"internal/thread",
			"internal/turns",
			"internal/watch",
		},
		why: "who runs a thread is handed its runs; it knows no HTTP, no particular store and no metrics",
	},
	"internal/agents": {
		ours: []string{
			"",
			"access",
			"codes",
			"sharedstate",
			"state",
			"sharedstate", "store",
			"internal/fallback",
			"internal/hooks",
			"internal/routine",
			"internal/schema",
			"internal/thread",
		},
		why: "agents are ready before anything runs: they know no run, and nobody who runs one",
	},
	"internal/watch": {
		ours: []string{
			"",
			"codes",
			"store",
			"threads",
			"internal/agui",
			"internal/journal",
			"internal/thread",
		},
		why: "a watcher knows a thread, its log and the feed of a run: it knows no run, and nobody who runs one",
	},
	"internal/pin": {
		ours: []string{"", "store", "threads", "internal/agui", "internal/clock", "internal/thread"},
		why:  "pin is about runs that nobody runs: it knows a thread and its store, and no agent",
	},
	"internal/fallback": {
		ours: []string{"", "failure"},
		why:  "fallback is a pure function of a failure; it asks no model",
	},
	"internal/decide": {
		ours: []string{
			"",
			"codes",
			"threads",
			"internal/agui",
			"internal/netguard",
			"internal/schema",
			"internal/thread",
		},
		why: "decide is a pure function of a thread and an input: it reads no store and starts nothing",
	},
	"internal/hooks": {
		ours: []string{"", "codes", "internal/prompt", "internal/secrets", "internal/thread"},
		why:  "hooks call an agent's middleware, guarded; they know no run",
	},
	"internal/journal": {
		ours: []string{"", "store", "internal/agui", "internal/clock", "internal/thread"},
		why:  "journal is the one way from a run to its thread's log; it knows no agents",
	},
	"internal/indexing": {
		ours: []string{
			"",
			"store",
			"internal/clock",
			"internal/dataformat",
			"internal/routine",
			"internal/thread",
		},
		why: "the walk that completes the index knows threads, and of the engine the few methods that it names",
	},
	"internal/upkeep": {
		ours: []string{
			"",
			"codes",
			"store",
			"threads",
			"internal/agui",
			"internal/clock",
			"internal/indexing",
			"internal/jsonpatch",
			"internal/quota",
			"internal/routine",
			"internal/thread",
		},
		why: "upkeep is about threads that do not run: of the engine that runs them it needs the few " +
			"methods that it names itself",
	},
	"internal/audit": {
		ours: []string{
			"",
			"codes",
			"state",
			"store",
			"threads",
			"internal/agui",
			"internal/clock",
			"internal/dataformat",
			"internal/quota",
			"internal/routine",
			"internal/strictjson",
			"internal/thread",
			"internal/turns",
		},
		why: "audit looks at a stored thread without an engine: operators have only the store",
	},
	"internal/inspector": {
		ours: []string{"", "codes", "store", "threads", "internal/agui", "internal/routine", "internal/thread"},
		why:  "inspector shows what is stored of a thread; it knows no engine but the few functions that it is given",
	},
	"internal/http": {
		ours: []string{
			"",
			"access",
			"codes",
			"store",
			"threads",
			"internal/agui",
			"internal/aisdk",
			"internal/clock",
			"internal/connections",
			"internal/figures",
			"internal/headers",
			"internal/http/agentcard",
			"internal/http/door",
			"internal/http/exchange",
			"internal/jsonpatch",
			"internal/strictjson",
			"internal/tanstack",
			"internal/turns",
		},
		libraries: []string{"github.com/go-chi/chi"},
		why:       "http decodes, makes one call and encodes; it does not know how a run advances",
	},
	"internal/http/agentcard": {
		ours: []string{"", "access"},
		why:  "what is said of an agent is a pure function of its configuration",
	},
	"internal/http/door": {
		ours: []string{"", "codes", "internal/netguard"},
		why:  "the door looks at headers before anybody asks who has sent a request",
	},
	"internal/http/exchange": {
		ours: []string{
			"",
			"codes",
			"internal/clock",
			"internal/headers",
			"internal/http/door",
			"internal/strictjson",
			"internal/turns",
		},
		libraries: []string{"github.com/go-chi/chi"},
		why:       "exchange looks after every request and its response, and knows no route",
	},
	"internal/tanstack": {
		ours: []string{"", "internal/agui"},
		why:  "tanstack rewrites messages; it reads no thread and knows no route",
	},
	"internal/figures": {
		ours: []string{"", "observe", "store", "internal/clock"},
		why:  "figures count what they are told, in memory; they know neither the loop nor HTTP",
	},
	"internal/connections": {
		ours: []string{"internal/clock"},
		why:  "connections knows what each of them is needed for, and neither routes nor callers",
	},
	"internal/memstore": {
		ours: []string{"", "store", "internal/storekit"},
		why:  "a store never parses what it stores",
	},
	"internal/filestore": {
		ours: []string{
			"",
			"store",
			"internal/storekit",
			"internal/frame",
			"internal/filestore/folder",
		},
		libraries: []string{"github.com/cockroachdb/pebble"},
		why:       "a store never parses what it stores",
	},
	"internal/filestore/folder": {
		ours:      []string{"store", "internal/frame"},
		libraries: []string{"github.com/cockroachdb/pebble"},
		why:       "folder looks after files and what is written to them; it knows neither keys nor engines",
	},
	"internal/redisstore": {
		ours: []string{
			"",
			"store",
			"internal/clock",
			"internal/storekit",
			"internal/frame",
			"internal/redisstore/connection",
		},
		libraries: []string{"github.com/redis/go-redis"},
		why:       "a store never parses what it stores",
	},
	"internal/redisstore/connection": {
		ours:      []string{"store"},
		libraries: []string{"github.com/redis/go-redis"},
		why:       "connection makes a client; it knows neither keys nor scripts",
	},
	"internal/metrics": {
		ours:      []string{"", "codes", "failure", "state", "store", "threads", "observe", "internal/fallback"},
		libraries: []string{"github.com/prometheus/client_golang"},
		why:       "metrics count what they are told; they know neither the loop nor HTTP",
	},
	"web": {ours: []string{"internal/origins"}, why: "the page is files and a handler"},
	"middleware": {
		ours: []string{
			"",
			"failure",
			"codes",
			"state",
			"store",
			"internal/strictjson",
			"middleware/internal/shared",
		},
		why: "the built-ins are written with the public API, so that users can write theirs; the helpers that " +
			"they share know no more",
	},
	"middleware/budget": {
		ours: []string{
			"",
			"codes",
			"state",
			"store",
			"middleware",
			"middleware/internal/shared",
		},
		why: "a middleware that takes more than a file or two is a package; middleware has only the " +
			"Duration of its options",
	},
	"middleware/permission": {
		ours: []string{"", "state", "store", "internal/strictjson", "middleware/internal/shared"},
		why:  "as middleware/budget",
	},
	"middleware/redaction": {ours: []string{"", "activity", "state"}, why: "as middleware/budget"},
	"middleware/kinds": {
		ours: []string{"", "middleware", "middleware/budget", "middleware/permission", "middleware/redaction"},
		why:  "the list of all built-ins is above them: none of them can need it",
	},
	"middleware/internal/shared": {
		ours: []string{"", "codes", "store"},
		why:  "what middleware shares knows the ledger of the public API, and no middleware",
	},
	"internal/model/scripted": {ours: []string{""}, why: "a model knows neither the loop nor AG-UI"},
	"internal/config": {
		ours:      []string{"", "internal/schema"},
		libraries: []string{"go.yaml.in/yaml"},
		why:       "config reads a file; what tools, models and middleware there are is told by its caller",
	},
	"internal/prompt": {
		why: "prompt is a leaf: what models are sent, measured where it is sent and noted where it is stored",
	},
	"internal/modelhttp": {
		ours: []string{"", "failure", "internal/prompt", "internal/headers", "internal/strictjson", "model"},
		why:  "modelhttp is a leaf that the clients of providers share",
	},
	"model": {why: "every provider's client is given the same options, which know none of them"},
	"model/anthropic": {
		ours: []string{"", "failure", "internal/modelhttp", "internal/prompt", "model"},
		why:  "a model knows neither the loop nor AG-UI",
	},
	"model/gemini": {
		ours: []string{"", "failure", "internal/modelhttp", "internal/prompt", "internal/strictjson", "model"},
		why:  "a model knows neither the loop nor AG-UI",
	},
	"model/openai": {
		ours: []string{"", "failure", "internal/modelhttp", "internal/prompt", "internal/strictjson", "model"},
		why:  "a model knows neither the loop nor AG-UI",
	},
	"remote": {
		ours: []string{
			"", "failure", "internal/agui", "internal/modelhttp", "internal/schema", "internal/strictjson", "model",
		},
		why: "an agent elsewhere is a model whose provider speaks AG-UI; it knows no engine",
	},
	"model/responses": {
		ours: []string{"", "failure", "internal/modelhttp", "internal/prompt", "model"},
		why:  "a model knows neither the loop nor AG-UI",
	},
	"httptool": {
		ours: []string{
			"",
			"idempotency",
			"internal/netguard",
			"internal/secrets",
			"internal/schema",
			"internal/headers",
		},
		libraries: []string{"go.yaml.in/yaml", "golang.org/x/net/html"},
		why:       "a tool knows neither the loop nor AG-UI; OpenAPI documents are JSON or YAML, pages HTML",
	},
	"internal/declared": {
		ours: []string{
			"",
			"access",
			"contract",
			"credential",
			"httptool",
			"internal/config",
			"internal/tools",
			"mcp",
			"remote",
			"secret",
			"webhook",
		},
		why: "declared makes tools of what config has read; it knows no server",
	},
	"internal/tools": {
		ours: []string{"", "access", "activity", "contract", "internal/jsonpatch"},
		why:  "tools are written with the public API; jsonpatch is a leaf",
	},
	"mcp": {
		ours: []string{
			"",
			"activity",
			"internal/netguard",
			"internal/origins",
			"internal/schema",
			"internal/secrets",
			"internal/strictjson",
			"mcp/internal/stdio",
			"mcp/internal/streamhttp",
			"mcp/internal/wire",
			"secret",
		},
		libraries: []string{"github.com/modelcontextprotocol/go-sdk"},
		why:       "a source of tools knows neither the loop nor AG-UI",
	},
	"mcp/internal/stdio": {
		ours:      []string{"mcp/internal/wire"},
		libraries: []string{"github.com/modelcontextprotocol/go-sdk"},
		why:       "a transport moves messages; it knows no tools",
	},
	"mcp/internal/streamhttp": {
		ours:      []string{"mcp/internal/wire"},
		libraries: []string{"github.com/modelcontextprotocol/go-sdk"},
		why:       "as mcp/internal/stdio",
	},
	"mcp/internal/wire": {
		libraries: []string{"github.com/modelcontextprotocol/go-sdk"},
		why:       "wire is a leaf that the transports share",
	},
	"server": {
		libraries: []string{"github.com/prometheus/client_golang"},
		ours: []string{
			"",
			"access",
			"codes",
			"sharedstate",
			"state",
			"store",
			"threads",
			"internal/agents",
			"internal/agui",
			"internal/circuit",
			"internal/clock",
			"internal/config",
			"internal/connections",
			"internal/dataformat",
			"internal/declared",
			"internal/fallback",
			"internal/figures",
			"internal/headers",
			"internal/http",
			"internal/http/agentcard",
			"internal/http/door",
			"internal/inspector",
			"internal/loop",
			"internal/metrics",
			"internal/netguard",
			"internal/operator",
			"internal/owner",
			"internal/pace",
			"internal/quota",
			"internal/routine",
			"model",
			"model/anthropic",
			"model/gemini",
			"model/openai",
			"model/responses",
			"remote",
			"internal/model/scripted",
			"internal/stores",
			"internal/thread",
			"internal/tools",
			"internal/turns",
			"internal/audit",
			"internal/upkeep",
			"middleware",
			"middleware/budget",
			"middleware/kinds",
			"middleware/redaction",
			"observe",
			"httptool",
			"mcp",
		},
		why: "server wires; it is the only package that sees the parts together, and it reads the file of agents for " +
			"every program, ours and those of others",
	},
	"cmd/holdfast": {ours: []string{"internal/command"}, why: "a main has nothing to test"},
	"cmd/server":   {ours: []string{"internal/command"}, why: "a main has nothing to test"},
	"internal/settings": {
		ours: []string{"server", "jwtauth"},
		why:  "a row of the table of settings says which member of a public configuration it sets",
	},
	"internal/command": {
		ours: []string{
			"",
			"state",
			"store",
			"offline",
			"access",
			"server",
			"apikey",
			"jwtauth",
			"web",
			"internal/settings",
		},
		why: "the program turns settings into a server.Config and nothing more; whatever it is made of is public, " +
			"apart from its settings, so that a program of one's own can be it",
	},
	"cmd/holdfastvet/internal/statecheck": {
		libraries: []string{"golang.org/x/tools"},
		why:       "the analysis reads other people's code; it runs none of ours",
	},
	"cmd/holdfastvet": {
		ours:      []string{"cmd/holdfastvet/internal/statecheck"},
		libraries: []string{"golang.org/x/tools"},
		why:       "a tool of its own: the server carries none of it",
	},
	"bench": {
		ours:      []string{"", "observe", "server", "store"},
		libraries: []string{"github.com/redis/go-redis"},
		why:       "the bench measures the server as programs embed it, and asks Redis what that costs",
	},
	"examples/hello": {ours: []string{"", "server"}, why: "an example may use only what is public"},
	"examples/dojo": {
		ours: []string{"server", "web", "examples/dojo/features"},
		why:  "an example may use only what is public",
	},
	"examples/dojo/features": {ours: []string{"", "middleware/permission", "sharedstate"},
		why: "an agent needs no server"},
	"examples/quota": {
		ours: []string{"", "state", "server"},
		why:  "a user's own middleware is written with the public API",
	},
	"examples/tools/shop": {
		libraries: []string{"github.com/modelcontextprotocol/go-sdk"},
		why:       "an MCP server is somebody else's program",
	},
}

// testOnly are packages that are not part of the server, and those below them.
var testOnly = []string{
	"internal/archtest",
	"internal/e2e",
	"internal/simulate",
	"internal/testkit",
}

// isTestOnly reports whether a package is one of them.
func isTestOnly(name string) bool {
	return slices.ContainsFunc(testOnly, func(only string) bool {
		return name == only || strings.HasPrefix(name, only+"/")
	})
}

// goPackage is a package as go list tells it.
type goPackage struct {
	ImportPath, Dir, Export string
	Imports, GoFiles        []string
}

func TestImports(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	listed, err := goList(nil, module+"/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listed {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if isTestOnly(name) {
			continue
		}
		r, ok := rules[name]
		if !ok {
			t.Errorf("package %q has no rule in internal/archtest: say there what it may import, and why", name)
			continue
		}
		seen[name] = true
		for _, imported := range p.Imports {
			check(t, name, imported, r)
		}
	}
	for name := range rules {
		if !seen[name] {
			t.Errorf("internal/archtest has a rule for %q, which does not exist", name)
		}
	}
}

// TestProgramsArePublic: our own program and the examples are made of what other programs
// can import too.
func TestProgramsArePublic(t *testing.T) {
	t.Parallel()
	for name, r := range rules {
		if name != "internal/command" && name != "internal/settings" && !strings.HasPrefix(name, "examples/") {
			continue
		}
		for _, ours := range r.ours {
			if strings.Contains("/"+ours+"/", "/internal/") && ours != "internal/settings" {
				t.Errorf("%q may import %q, which other programs cannot", name, ours)
			}
		}
	}
}

func check(t *testing.T, name, imported string, r rule) {
	t.Helper()
	if rest, ours := strings.CutPrefix(imported, module); ours {
		if !slices.Contains(r.ours, strings.TrimPrefix(rest, "/")) {
			t.Errorf("%q imports our %q, but may import only %q: %s", name, rest, r.ours, r.why)
		}
		return
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return // the standard library
	}
	if !slices.ContainsFunc(r.libraries, func(l string) bool { return strings.HasPrefix(imported, l) }) {
		t.Errorf("%q imports %q; of other people's libraries it may use only %q: %s", name, imported, r.libraries,
			r.why)
	}
}
