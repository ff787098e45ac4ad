package config_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/config"
)

// TestModels: a list of models, each with its own settings, in the order of the file; what
// is wrong with one has its place.
func TestModels(t *testing.T) {
	f, err := config.Parse("a.yaml", []byte(`agents:
  - name: a
    models:
      - openai/first
      - name: openai/second
        baseURL: http://localhost:1/v1/
        headers: {X-A: "${A}"}
        proxy: http://${P}:3128
        apiKeyEnv: SECOND_KEY
        params: {seed: 7}
        timeout: 1m30s
        idleTimeout: 20s
      - &third {name: demo}
    refusal: next
  - name: b
    models: [*third]
    refusal: end
  - {name: c, model: demo}
`), known(), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	a := f.Agents[0]
	if len(a.Models) != 3 || a.Models[0].Name != "openai/first" || a.Models[2].Name != "demo" || !a.FallbackRefused {
		t.Fatalf("%+v", a)
	}
	m := a.Models[1]
	spec := askedOf(t, m)
	params, _ := json.Marshal(spec.Params)
	if m.Name != "openai/second" || spec.BaseURL != "http://localhost:1/v1" || spec.Headers["X-A"] != "A" ||
		spec.APIKeyEnv != "SECOND_KEY" || string(params) != `{"seed":7}` || spec.Timeout != 90*time.Second ||
		spec.IdleTimeout != 20*time.Second {
		t.Errorf("%+v", m)
	}
	if b, c := f.Agents[1], f.Agents[2]; len(b.Models) != 1 || b.Models[0].Name != "demo" || b.FallbackRefused ||
		len(c.Models) != 1 || c.Models[0].Name != "demo" {
		t.Errorf("%+v, %+v", b, c)
	}
	err = m.Decode(&spec, func(string) string { return "" })
	want := "a.yaml:7:24: headers.X-A needs the environment variable A, which is not set\na.yaml:8:16: proxy needs " +
		"the environment variable P, which is not set"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for want, got := range map[string]error{
		"a.yaml:9:9: no":   m.Errorf("apiKeyEnv", "no"),
		"a.yaml:5:9: no":   m.Errorf("name", "no"),
		"a.yaml:4:9: no":   a.Models[0].Errorf("name", "no"),
		"a.yaml:18:15: no": f.Agents[2].Models[0].Errorf("name", "no"),
	} {
		if got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
