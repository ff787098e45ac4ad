package server_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/server"
)

// The list of an agent's models: in the file, as a default, and how long each may take.

// TestModelList: each model of a list is made with its own settings, in the order of the
// file.
func TestModelList(t *testing.T) {
	var specs []server.ModelSpec
	path := written(t, `
agents:
  - name: shop
    models:
      - acme/large
      - name: acme/small
        baseURL: http://${HOST}/v1
        headers: {X-Team: "${TEAM}"}
        proxy: direct
        apiKeyEnv: SMALL_KEY
        params: {seed: 7}
        timeout: 1m
        idleTimeout: 10s
      - demo
    refusal: next
  - {name: one, models: [acme/large]}
`)
	env := map[string]string{"HOST": "localhost:1", "TEAM": "blue"}
	agents, limits, err := loadAgents(path, server.Parts{
		Getenv: func(name string) string { return env[name] },
		Models: map[string]func(server.ModelSpec) (holdfast.Model, error){
			"acme/": func(spec server.ModelSpec) (holdfast.Model, error) {
				specs = append(specs, spec)
				return hello, nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(agents) != 2 || len(agents[0].Fallbacks) != 2 || !agents[0].FallbackRefused ||
		len(agents[1].Fallbacks) != 0 || agents[1].FallbackRefused || limits["shop"] != (server.Limits{}) {
		t.Errorf("%+v", agents)
	}
	want := server.ModelSpec{
		Name:        "acme/small",
		BaseURL:     "http://localhost:1/v1",
		Headers:     map[string]string{"X-Team": "blue"},
		Proxy:       "direct",
		APIKeyEnv:   "SMALL_KEY",
		Timeout:     time.Minute,
		IdleTimeout: 10 * time.Second,
	}
	specs[1].Params = nil
	if len(specs) != 3 || specs[0].Name != "acme/large" || specs[0].BaseURL != "" ||
		fmt.Sprintf("%+v", specs[1]) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v", specs)
	}
	_, models, err := server.ValidateAgents(path,
		server.Parts{Getenv: noEnv, Models: map[string]func(server.ModelSpec) (holdfast.Model, error){"acme/": nil}})
	if err != nil || !slices.Equal(models, []string{"acme/large,acme/small,demo", "acme/large"}) {
		t.Errorf("%q, %v", models, err)
	}
}

// TestModelListMistakes: whatever keeps one of the models from being made is said with its
// place, for all of them, before anything runs.
func TestModelListMistakes(t *testing.T) {
	path := written(t, `
agents:
  - name: a
    models:
      - openai/x
      - name: anthropic/y
        headers: {X-Team: "${TEAM}"}
      - name: gemini/z
        apiKeyEnv: Z_KEY
      - name: responses/v
`)
	_, _, err := loadAgents(path, server.Parts{Getenv: noEnv})
	want := path + ":5:9: the model x needs a key: set OPENAI_API_KEY, or name a server that needs " +
		"none with OPENAI_BASE_URL\n" +
		path + ":7:27: headers.X-Team needs the environment variable TEAM, which is not set\n" +
		path + ":9:9: the model z needs a key: set Z_KEY\n" +
		path + ":10:9: the model v needs a key: set OPENAI_API_KEY, or name a server that needs " +
		"none with OPENAI_BASE_URL"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestDefaultChain: the default model may be several, with or without a file.
func TestDefaultChain(t *testing.T) {
	keys := func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}[name]
	}
	parts := server.Parts{Getenv: keys, DefaultModel: "openai/x, anthropic/y"}
	for _, path := range []string{"", written(t, "agents:\n  - name: a\n")} {
		agents, _, err := loadAgents(path, parts)
		if err != nil || len(agents) != 1 || len(agents[0].Fallbacks) != 1 {
			t.Fatalf("%q: %+v, %v", path, agents, err)
		}
		names := ""
		for _, m := range append([]holdfast.Model{agents[0].Model}, agents[0].Fallbacks...) {
			provider, model := m.(interface{ ModelName() (string, string) }).ModelName()
			names += provider + "/" + model + " "
		}
		if names != "openai/x anthropic/y " {
			t.Errorf("%q: the models are %s", path, names)
		}
	}
	path := written(t, "agents:\n  - name: a\n    params: {seed: 7}\n")
	_, _, err := loadAgents(path, parts)
	want := path + ":3:5: params is for one model, but the default model is a chain, openai/x, anthropic/y; " +
		"name this agent's model"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	parts.Getenv = noEnv
	_, _, err = loadAgents("", parts)
	if err == nil || !strings.Contains(err.Error(), "set OPENAI_API_KEY") ||
		!strings.Contains(err.Error(), "set ANTHROPIC_API_KEY") {
		t.Errorf("without keys: %v", err)
	}
}

// TestCircuitKeys: the same model has another circuit where it is asked elsewhere or with
// another key, and no key can be read in it.
func TestCircuitKeys(t *testing.T) {
	for _, provider := range []string{"openai", "responses", "anthropic", "gemini"} {
		agents, _, err := loadAgents(written(t, fmt.Sprintf(`
agents:
  - name: a
    models:
      - {name: %[1]s/m, apiKeyEnv: KEY1}
      - {name: %[1]s/other, apiKeyEnv: KEY1, params: {seed: 1}, timeout: 1m}
      - {name: %[1]s/m, apiKeyEnv: KEY2}
      - {name: %[1]s/m, apiKeyEnv: KEY1, baseURL: "http://localhost:1"}
      - {name: %[1]s/m, apiKeyEnv: KEY1, proxy: direct}
      - {name: %[1]s/m, apiKeyEnv: KEY1, headers: {X-Account: two}}
`, provider)), server.Parts{Getenv: func(name string) string {
			if strings.HasPrefix(name, "KEY") {
				return "secret-" + name
			}
			return ""
		}})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, m := range append([]holdfast.Model{agents[0].Model}, agents[0].Fallbacks...) {
			key := m.(interface{ CircuitKey() string }).CircuitKey()
			if len(key) != 12 || strings.Trim(key, "0123456789abcdef") != "" {
				t.Errorf("%s: the key is %q", provider, key)
			}
			keys = append(keys, key)
		}
		if keys[0] != keys[1] {
			t.Errorf("%s: the hash depends on the model: %q", provider, keys)
		}
		slices.Sort(keys)
		if different := slices.Compact(keys); len(different) != 5 {
			t.Errorf("%s: %d different keys, want 5: %q", provider, len(different), keys)
		}
	}
}

// TestCircuitsOfTwoAPIs: a gateway that has only one of OpenAI's APIs fails there alone. Its
// circuit keeps nobody from the other one, at the same place with the same key.
func TestCircuitsOfTwoAPIs(t *testing.T) {
	agents, _, err := loadAgents(written(t, "agents:\n  - {name: a, models: [responses/m, openai/m]}\n"),
		server.Parts{Getenv: func(name string) string {
			return map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://gateway.example/v1"}[name]
		}})
	if err != nil {
		t.Fatal(err)
	}
	key := func(m holdfast.Model) string { return m.(interface{ CircuitKey() string }).CircuitKey() }
	if first, second := key(agents[0].Model), key(agents[0].Fallbacks[0]); first == second {
		t.Errorf("both have the circuit %s", first)
	}
}

// silent returns a model that says nothing until it is cancelled.
func silent(server.ModelSpec) (holdfast.Model, error) {
	return holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			<-ctx.Done()
			yield(holdfast.Delta{}, ctx.Err())
		}
	}), nil
}

// talkative returns a model that says a word each second and never ends.
func talkative(server.ModelSpec) (holdfast.Model, error) {
	return holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for yield(holdfast.Delta{Text: "word "}, nil) {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					yield(holdfast.Delta{}, ctx.Err())
					return
				}
			}
		}
	}), nil
}

// TestTimeoutsOfModels: each model of a list is held to its own timeouts, even where the
// agent's are stricter, and one without any to the agent's.
func TestTimeoutsOfModels(t *testing.T) {
	path := written(t, `
agents:
  - name: a
    models:
      - {name: silent, idleTimeout: 5m}
      - {name: talkative, timeout: 20m}
      - {name: silent, timeout: 30s, headers: {A: b}}
      - {name: silent, headers: {A: c}}
      - demo
    limits: {modelTries: 1, modelTimeout: 10m, modelIdleTimeout: 2m}
`)
	synctest.Test(t, func(t *testing.T) {
		c := config(t)
		var err error
		c.Agents, c.Limits, err = loadAgents(path, server.Parts{
			Getenv: noEnv,
			Models: map[string]func(server.ModelSpec) (holdfast.Model, error){
				"silent":    silent,
				"talkative": talkative,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.StartEngine(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for _, err := range s.Run(t.Context(), server.LocalPrincipal(), server.Input{Thread: "t", Text: "help"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		took, want := time.Since(begun), 5*time.Minute+20*time.Minute+30*time.Second+2*time.Minute
		if took < want || took > want+30*time.Second {
			t.Errorf("the models took %s, want %s", took, want)
		}
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestTimedModel: alone, a model with a timeout is held to it, and its error says that
// another try may help.
func TestTimedModel(t *testing.T) {
	agents, _, err := loadAgents(written(t, "agents:\n  - {name: a, models: [{name: silent, idleTimeout: 5s}]}\n"),
		server.Parts{
			Getenv: noEnv, Models: map[string]func(server.ModelSpec) (holdfast.Model, error){"silent": silent},
		})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		for _, err := range agents[0].Model.Stream(t.Context(), &holdfast.ModelRequest{}) {
			var failed *holdfast.ModelError
			if !errors.As(err, &failed) || failed.Kind != failure.Cut || !failed.Retryable {
				t.Errorf("the error is %v", err)
			}
		}
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
	if provider, model := agents[0].Model.(interface{ ModelName() (string, string) }).ModelName(); provider+
		model != "" {
		t.Errorf("it has the name %s of %s", model, provider)
	}
}
