# make run and make test need nothing but Go.
.PHONY: help run build test raced unraced tidy short check fmt lint api bench model-cuts remote-kills remotes fairness hostile damage store-kills fuzz web verify-web dev browser browser-bench pages survives kills dojo screenshot program clients ai-sdk tanstack clients-dist cuts long first-page model-suite size smoke prefixes states tested deaths mcp takeover approvals resets moves attach thousand mixed watchers failover fleet due lists installed stale lease all-proofs

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: ## run the server: embedded store in ./data, demo model, http://localhost:8080
	go run ./cmd/server

build: ## build bin/holdfast
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/holdfast ./cmd/holdfast

SIZE = 36000000
size: ## the size of the program for linux/amd64, which must not be more than 36 MB
	GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/holdfast-linux-amd64 ./cmd/holdfast
	@size=$$(wc -c <bin/holdfast-linux-amd64); echo "$$size bytes (limit $(SIZE))"; test "$$size" -le $(SIZE)

# What takes longest comes first, so that no processor is idle at the end. Most of the time
# it waits, so there are two programs more than processors.
FIRST = ./internal/e2e ./internal/redisstore ./web ./internal/filestore ./server ./mcp ./internal/command
# What has no goroutines takes several times as long under the detector, which has nothing to watch.
UNRACED = /internal/archtest$$|/cmd/holdfastvet/internal/statecheck$$|/internal/agui$$|/internal/config$$|/internal/schema$$
# What has tests of the data format that is to come: see internal/thread/format.go.
NEXT = ./internal/audit ./internal/loop
# Packages whose tests are run elsewhere: see .ci/run.
WITHOUT ?=
# The detector waits a second at the end of each test program for the reports of other
# threads, unless it is told to wait less.
raced: export GORACE = atexit_sleep_ms=50
test: raced unraced ## run all tests, with the race detector if there is a C compiler

raced:
	go test -timeout=30m -p $$(($$(getconf _NPROCESSORS_ONLN) + 2)) $(shell command -v gcc >/dev/null 2>&1 && echo -race) \
		$(filter-out $(WITHOUT), $(shell go list $(FIRST) && go list work | grep -vE '$(UNRACED)'))

unraced:
	go test $(filter-out $(WITHOUT), $(shell go list work | grep -E '$(UNRACED)'))
	go test -tags nextformat -run TestNextFormat $(NEXT)

short: ## the tests that take less than two minutes once all is compiled: none that starts servers
	go test $(shell go list work | grep -v /internal/e2e)

# The modules that go.work joins: "go list work" has the packages of all of them. What builds
# them is a module of its own, tools, whose requirements are not theirs.
MODULES = $(shell go list -m -f '{{.Dir}}')

# All Go files of ours. What is in testdata is read by tests, line by line.
SOURCES = git ls-files --cached --others --exclude-standard '*.go' | grep -v '/testdata/'

fmt: ## format all Go files: 120 columns, one line for each element of a large literal
	GOWORK=off go -C tools build -o ../bin/format ./format
	$(SOURCES) | xargs bin/format -w

check: lint tidy ## what CI checks besides the tests
	test -z "$$(gofmt -l .)"
	GOWORK=off go -C tools build -o ../bin/format ./format
	$(SOURCES) | xargs bin/format
	GOWORK=off go -C tools test ./...
	go vet work
	go vet -tags crashpoints ./internal/loop
	go vet -tags nextformat ./internal/thread $(NEXT)
	go build -o bin/holdfastvet ./cmd/holdfastvet
	go vet -vettool=bin/holdfastvet work

tidy:
	for module in $(MODULES); do go -C $$module mod tidy -diff || exit 1; done

lint: ## run the pinned linter; staticcheck.conf says what it checks, and why
	GOWORK=off go -C tools build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck $$(go list work)

api: ## write api/*.txt, the public API as text, after a change that is meant
	go test ./internal/archtest -run 'TestAPI$$' -count=1 -update

program: ## build, test and run examples/program, which uses every public package
	scripts/program.sh

attach: ## come to every run of the golden stores with the cursor of every record: live, archived and imported; the official client reads what is seen
	go test -count=1 -run='TestAttachFromEveryRecord$$' -v ./internal/e2e

FUZZTIME ?= 10s
FUZZGUIDE ?= all
FUZZPART ?= 0/1
fuzz: ## run every fuzz target for FUZZTIME, guided by all code, or with FUZZGUIDE=project by the project's
	scripts/fuzz.sh $(FUZZTIME) $(FUZZGUIDE) $(FUZZPART)

smoke: ## ask the real providers whose keys are in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY); costs a few cents
	HOLDFAST_SMOKE=1 go test -count=1 -v ./internal/e2e/smoke

model-suite: ## what every model provider's client must pass, whole: answers are cut at each of their bytes
	MODEL_SUITE_PART=0/1 go test -count=1 -run='TestConformance$$' ./model/...

mcp: ## the MCP client against the official servers, over both transports; CI has one
	MCP_TEST_ALL=1 HOLDFAST_REQUIRE_ALL=1 go test -count=1 ./mcp/...

TRIALS ?= 2000
damage: ## damage an embedded store at TRIALS random places, half of them in small files, and look what becomes of it; prints the table in docs/durability.md
	FILESTORE_TEST_TRIALS=$(TRIALS) bash -o pipefail -c "go test -count=1 -timeout=60m -run='TestDamage$$|TestDamageUnchecked$$' -v ./internal/filestore | sed -nE 's/^ +[a-z_]+.go:[0-9]+: (\|.*|FILESTORE.*)/\1/p; /FAIL|_test.go.*(silent|thread|refused)|^ok/p'"

STORE_KILLS ?= 2000
store-kills: ## kill a process STORE_KILLS times while the files of its embedded store change: no crash may look like damage; prints the table in docs/durability.md
	FILESTORE_TEST_KILLS=$(STORE_KILLS) bash -o pipefail -c "go test -count=1 -timeout=60m -run='TestKills$$' -v ./internal/filestore | sed -nE 's/^ +[a-z_]+.go:[0-9]+: (\|.*|FILESTORE.*)/\1/p; /FAIL|_test.go.*(kill |thread|store)|^ok/p'"

model-cuts: ## cut the stream of every provider at every byte, with a fallback to another; prints the table in docs/models.md
	HOLDFAST_MODEL_CUTS=all bash -o pipefail -c "go test -count=1 -timeout=30m -run='^TestCuts$$' -v ./model/... | sed -nE 's/^ +(\|)/\1/p; /FAIL|^ok/p'"

remote-kills: ## kill remote agents, and the server before them, at random
	HOLDFAST_REMOTE_KILLS=500 go test -count=1 -timeout=30m -run='^TestRandomKills$$' -v ./remote

remotes: ## kill an agent in Node, the server before it, and both (needs Node)
	go build -o bin/holdfast ./cmd/holdfast
	HOLDFAST=$(CURDIR)/bin/holdfast RUNS=60 node examples/remote/kills.mjs

bench: ## benchmarks and the load bench, with the ratios that docs/benchmarks.md quotes
	scripts/bench.sh

fairness: ## how long one tenant's commits take while another sends the largest requests (needs redis-server)
	go run ./bench -fairness

SOCKETS ?= 10050
hostile: ## what SOCKETS hostile connections, and 400 costly requests, cost another tenant, readiness and SIGTERM; prints two tables (needs redis-server, ulimit -n above twice as many)
	HOLDFAST_HOSTILE=$(SOCKETS) HOLDFAST_REQUIRE_ALL=1 bash -o pipefail -c "go test -count=1 -timeout=30m -run='^TestHostile$$' -v ./internal/e2e | sed -nE 's/^ +hostile_test\.go:[0-9]+: (\|)/\1/p; s/^ +hostile_test\.go:[0-9]+: (.*MISSED)/\1/p; /FAIL|^ok/p'"; \
		sockets=$$?; go run ./bench -hostile && exit $$sockets

watchers: ## what idle watchers hold in memory, and what many watchers of a run cost Redis (needs redis-server)
	go run ./bench -watchers

web: ## make web/dist from web/src (needs Node)
	npm --prefix web ci --ignore-scripts --no-audit --no-fund
	npm --prefix web run build

verify-web: ## check that web/dist matches web/src, check the types in web/src, and run the page's own tests
	node web/verify.mjs
	npm --prefix web run types
	npm --prefix web run test

dev: ## serve the page from web/src, with what changes at once; needs a server at HOLDFAST_URL (http://localhost:8080)
	npm --prefix web run dev

# Said at once, and not by Node after minutes of measuring.
installed:
	@test -d clients/js/node_modules && test -d web/node_modules || { echo "packages from npm are missing: run scripts/install-test-deps.sh" >&2; exit 1; }

# One program for all tests that start a server, without what only debuggers read.
tested:
	go build -ldflags='-s -w' -o bin/holdfast-tested ./cmd/holdfast

browser: installed tested ## test the page in a real browser, with reload and kill -9
	node web/test/browser.mjs bin/holdfast-tested

browser-bench: installed tested ## the page's bars: what it loads, how a long run opens, how soon words are shown, axe (needs Chromium)
	node web/test/bench.mjs bin/holdfast-tested

STORES ?= file redis
pages: installed tested ## test the example pages of other frontends in a real browser, on STORES (needs Node, Chromium, redis-server)
	STORES="$(STORES)" scripts/pages.sh bin/holdfast-tested

survives: installed tested ## cut the connection, reload the page and kill the server under each client's answer, on STORES; prints the table of docs/frontends.md (needs Node, Chromium, redis-server)
	STORES="$(STORES)" TEST=../browser/survives.mjs scripts/pages.sh bin/holdfast-tested vanilla

kills: installed tested ## kill the server at PLACES places of an answer with tools and approvals on each stock client's page, on STORES; prints a table in docs/frontends.md (needs Node, Chromium, redis-server)
	STORES="$(STORES)" PLACES=$(PLACES) TEST=../browser/kills.mjs scripts/pages.sh bin/holdfast-tested vanilla copilotkit ai-sdk assistant-ui

HARMS ?= 3
dojo: installed ## go through the features of the AG-UI dojo with the official client, and on their page with a reload and a kill at HARMS places of each, on STORES; prints how many frames were right (needs Node, Chromium, redis-server)
	go build -ldflags='-s -w' -o bin/dojo-tested ./examples/dojo
	STORES="$(STORES)" HARMS=$(HARMS) TEST=test/dojo.mjs scripts/pages.sh bin/dojo-tested dojo

screenshot: ## make the pictures of Studio in docs/images
	scripts/screenshot.sh

clients: installed tested ## check that clients/js/dist matches its source, and test it against a real server (needs Node)
	node clients/js/build.mjs --check
	HOLDFAST_BINARY=$(CURDIR)/bin/holdfast-tested node --test clients/js/test/*.test.mjs

PLACES ?= 50
ai-sdk: installed tested ## test the Vercel AI SDK, unchanged, in versions 5 to 7 against a real server that is killed at PLACES places, on both stores (needs Node, redis-server)
	HOLDFAST_AISDK=all PLACES=$(PLACES) HOLDFAST_BINARY=$(CURDIR)/bin/holdfast-tested node --test clients/js/test/aisdk.test.mjs

tanstack: installed tested ## test TanStack AI's client, unchanged, against a real server that is killed at PLACES places, on both stores (needs Node, redis-server)
	HOLDFAST_TANSTACK=all PLACES=$(PLACES) HOLDFAST_BINARY=$(CURDIR)/bin/holdfast-tested node --test clients/js/test/tanstack.test.mjs

clients-dist: installed ## make clients/js/dist from clients/js/src (needs Node)
	node clients/js/build.mjs

first-page: ## run the five commands of docs/frontends.md in a new folder, up to an answer in a browser (needs the network)
	node examples/browser/firstpage.mjs

TURNS ?= 200
long: ## a thread of 2,000 messages, of which the model takes a few dozen, goes on for TURNS turns on both stores (needs redis-server)
	TURNS=$(TURNS) go test -count=1 -run='TestALongThreadGoesOn$$' -v ./internal/e2e

CUTS ?= 1000
SEED ?= 1
cuts: installed tested ## cut CUTS connections at random bytes, with both official clients in both dialects; prints the table in docs/frontends.md
	HOLDFAST_BINARY=$(CURDIR)/bin/holdfast-tested node clients/js/test/cuts.mjs $(CUTS) $(SEED)

KILLS ?= 1000
prefixes: ## kill workers KILLS times, and compare what models are asked before and after; prints the table in docs/prompt-cache.md (needs redis-server)
	HOLDFAST_PREFIX_KILLS=$(KILLS) HOLDFAST_PREFIX_SEED=$(SEED) go test -count=1 -timeout=60m -run='TestPrefixes$$' -v ./internal/e2e

STATES ?= 2000
states: ## let two pages, tools and requests change the shared state at once, with kills and reloads, in STATES sequences on each store; prints a table (needs redis-server)
	HOLDFAST_STATES=$(STATES) go test -count=1 -timeout=60m -run='TestStates$$' -v ./internal/simulate/states

UPDATE ?=
deaths: ## kill Holdfast, the other side and the network in the middle of every kind of tool call, on both stores; prints the table in docs/durability.md, and with UPDATE=-update writes it (needs redis-server, node)
	HOLDFAST_DEATHS=all HOLDFAST_REQUIRE_ALL=1 bash -o pipefail -c "go test -count=1 -timeout=20m -run='^TestDeaths' -v ./internal/e2e -args $(UPDATE) | sed -nE 's/^ +(\|)/\1/p; /FAIL|deaths_.*go:|^ok/p'"

FAILOVERS ?= 105
failover: ## let Redis's primaries die FAILOVERS times, with replicas that lag behind, and compare what was seen with what is left; prints the table in docs/durability.md (needs redis-server)
	HOLDFAST_FAILOVERS=$(FAILOVERS) HOLDFAST_FAILOVERS_SEED=$(SEED) HOLDFAST_REQUIRE_ALL=1 go test -count=1 -timeout=60m -run='TestFailovers$$' -v ./internal/e2e

TAKEOVERS ?= 100
takeover: installed tested ## kill TAKEOVERS servers, and suspend and shut down others, and measure how long their runs stand still; prints the table in docs/durability.md (needs redis-server, node)
	HOLDFAST_TAKEOVERS=$(TAKEOVERS) go test -count=1 -timeout=60m -run='TestTakeoverTimes$$' -v ./internal/e2e
	HOLDFAST_TIMED=1 HOLDFAST_REQUIRE_ALL=1 HOLDFAST_BINARY=$(CURDIR)/bin/holdfast-tested node --test clients/js/test/deploy.test.mjs

fleet: ## what an idle fleet of 300 servers costs Redis, how soon 1,000 runs of one of ten that is killed go on, and what a provider gets of it; prints the tables in docs/operations.md (needs redis-server, ulimit -n 20000)
	HOLDFAST_FLEET=1 HOLDFAST_REQUIRE_ALL=1 bash -o pipefail -c "go test -count=1 -timeout=30m -v -skip=^TestDue ./internal/e2e/fleet | sed -nE '/^\|/p; s/^ +[a-z]+_test.go:[0-9]+: (.*(bar|beside|after|allows).*)/\1/p; /^(FAIL|ok|panic)/p'"

RESTING ?= 1000000

due: ## how late calls that expire are found beside RESTING threads that rest, while a server is killed, and how fast all of these are deleted; prints the table in docs/operations.md (needs redis-server)
	HOLDFAST_FLEET=1 RESTING=$(RESTING) HOLDFAST_REQUIRE_ALL=1 bash -o pipefail -c "go test -count=1 -timeout=2h -v -run=^TestDue ./internal/e2e/fleet | sed -nE 's/^ +[a-z]+_test.go:[0-9]+: (\|.*)/\1/p; /^(FAIL|ok|panic)/p'"

LISTS ?= 1000000
lists: ## how long the first page of questions, of a user's and of a tenant's threads takes beside LISTS threads on both stores; prints the table in docs/operations.md (needs redis-server)
	HOLDFAST_LISTS=$(LISTS) go test -count=1 -timeout=2h -v ./internal/e2e/lists

RESETS ?= 50
resets: ## reset the connections of a server RESETS times on links of 0, 5, 20 and 100 ms one way, and kill it RESETS/5 times; prints the table in docs/durability.md (needs redis-server)
	HOLDFAST_RESETS=$(RESETS) go test -count=1 -timeout=60m -run='TestResets$$' -v ./internal/e2e

MOVES ?= 20
moves: ## let owners die MOVES times while their thread's slot moves to another node of a cluster; prints what docs/durability.md says (needs redis-server)
	HOLDFAST_SLOT_MOVES=$(MOVES) go test -count=1 -timeout=60m -run='TestTakeoverWhileSlotMoves$$' -v ./internal/e2e

APPROVALS ?= 104
approvals: ## stop a server right after a person's answer, APPROVALS times on each store; prints the table in docs/durability.md (needs redis-server)
	HOLDFAST_APPROVALS=$(APPROVALS) go test -count=1 -timeout=60m -run='TestStopAfterApprovals$$' -v ./internal/e2e

STALES ?= 200
stale: ## hold Redis's answers back from an owner, or suspend it, at the commit before a tool, STALES times, while another server takes its run over; prints the table in docs/durability.md (needs redis-server)
	HOLDFAST_STALES=$(STALES) HOLDFAST_STALES_SEED=$(SEED) HOLDFAST_REQUIRE_ALL=1 bash -o pipefail -c "go test -count=1 -timeout=30m -parallel=12 -run='^TestStaleOwner$$' -v ./internal/e2e | sed -nE 's/^ +stale_test.go:[0-9]+: (\|)/\1/p; /begun after|does not end|^FAIL|^ok/p'"

SEEDS ?= 1..10000
SPELL ?= 0
REDIS ?=
simulate: ## play the schedules SEEDS=a..b of the simulator, or fresh ones for SPELL=30s, or with SEED=n print the story of one; with REDIS=1 through the Redis layer; docs/reliability.md
ifeq ($(origin SEED),command line)
	go test -count=1 -run='^TestSeed$$' ./internal/simulate -args -seed=$(SEED) $(if $(REDIS),-redis)
else
	bash -o pipefail -c "go test -count=1 -timeout=24h -run='^TestSeeds$$' -v ./internal/simulate -args -seeds=$(SEEDS) -spell=$(SPELL) $(if $(REDIS),-redis) | sed -nE 's/^ +simulate_test.go:[0-9]+: (seed .*)/\1/p; /^(playing|seeds?) |FAIL|^ok|panic/p'"
endif

replays: ## compare the stories of SEEDS=a..b with those under a scheduler of Go's that throws dice; with REDIS=1 through the Redis layer; docs/reliability.md
	bash -o pipefail -c "go test -count=1 -timeout=24h -run='^TestReplays$$' -v ./internal/simulate -args -replays -seeds=$(SEEDS) $(if $(REDIS),-redis) | sed -nE 's/^ +replays_test.go:[0-9]+: (.*)/\1/p; /seeds have|FAIL|^ok|panic/p'"

ONLY ?=
mutants: ## break the protocol in small ways, those whose names contain ONLY, and print which seed of the simulator finds which; prints the table in docs/reliability.md
	bash -o pipefail -c "go test -count=1 -timeout=4h -run='^TestMutants$$' -v ./internal/simulate -args -mutants -only='$(ONLY)' | sed -nE '/^\|/p; s/^ +mutants_test.go:[0-9]+: (.*)/\1/p; /FAIL|^ok/p'"

lease: ## check the models of the lease with larger bounds, and that everything that could be left out of them is missed; prints the tables in docs/reliability.md (needs spin and gcc)
	HOLDFAST_REQUIRE_ALL=1 bash -o pipefail -c "go test -count=1 -timeout=60m -v ./internal/simulate/lease -args -whole | sed -nE 's/^ +lease_test.go:[0-9]+: (\|)/\1/p; /breaks|although|^        |FAIL|^ok/p'"

STEPS ?= 1000
thousand: ## one run of STEPS steps (an even number) on three servers, whose owner is killed in each; prints the table in docs/durability.md (needs redis-server, node)
	HOLDFAST_REQUIRE_ALL=1 HOLDFAST_STEPS=$(STEPS) HOLDFAST_SEED=$(SEED) bash -o pipefail -c "go test -count=1 -timeout=60m -run='TestKilledInEachStep$$' -v ./internal/e2e | sed -nE 's/^ +(\|)/\1/p; /FAIL|_test.go:|^ok/p'"

MIXED ?= 5
mixed: ## replace servers of this build and of the next one, with another data format, by each other, MIXED times, while conversations go on; prints the tables in docs/durability.md (needs redis-server)
	HOLDFAST_MIXED=$(MIXED) HOLDFAST_REQUIRE_ALL=1 go test -count=1 -timeout=60m -run='TestMixedBuilds$$' -v ./internal/e2e

PROOFS ?=
all-proofs: ## run every campaign of scripts/proofs.txt whole, or those in PROOFS, going on where it was interrupted, and write docs/proofs.md (needs what scripts/install-test-deps.sh installs)
	scripts/proofs.sh $(PROOFS)
