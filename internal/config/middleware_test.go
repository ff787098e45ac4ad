package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
)

// breaker and spending are options like those of a kind of middleware.
type breaker struct {
	Max   int                 `json:"max"`
	Tools []namedThing        `json:"tools"`
	Pause middleware.Duration `json:"pause"`
}

type namedThing struct {
	Name string `json:"name"`
}

func (b *breaker) check() error {
	if b.Max == 1 {
		return errors.New("max is 1: write 2 or more")
	}
	return nil
}

type spending struct {
	Limit  budget.Money            `json:"limit"`
	Prices map[string]budget.Price `json:"prices"`
}

func (b *spending) check() error {
	if len(b.Prices) == 0 {
		return errors.New("there are no prices")
	}
	return nil
}

// acme makes a middleware whose name is the options that it got.
func acme(raw json.RawMessage, options interface{ check() error }) (holdfast.Middleware, error) {
	if err := holdfast.DecodeOptions(raw, options); err != nil {
		return holdfast.Middleware{}, err
	}
	return holdfast.Middleware{Name: string(raw)}, options.check()
}

func madeOf(t *testing.T, text string) []string {
	t.Helper()
	f, err := config.Parse("c.yaml", []byte(text), known(), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, m := range f.Agents[0].Middleware {
		names = append(names, m.Name)
		if got := string(f.Agents[0].Options[i]); got != m.Name {
			t.Errorf("the options of %s are said to be %s", m.Name, got)
		}
	}
	return names
}

// TestMiddleware: the list keeps its order, an entry may be just a name, and options
// are as in the file.
func TestMiddleware(t *testing.T) {
	got := madeOf(t, `
agents:
  - name: a
    middleware:
      - acme.breaker: {max: 5, tools: [{name: wait}], pause: 30s}
      - acme.breaker
      - acme.breaker:
      - acme.breaker: {}
`)
	want := `{"max":5,"pause":"30s","tools":[{"name":"wait"}]} {} {} {}`
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPrices: the file's prices reach middleware that has none of its own, wherever
// they are in the file.
func TestPrices(t *testing.T) {
	got := madeOf(t, `
agents:
  - name: a
    middleware:
      - acme.budget: {limit: 10.50}
      - acme.budget: {limit: 1, prices: {own: {input: 3}}}
      - acme.breaker
prices:
  acme/large: {input: 0.10, output: 2}
`)
	want := `{"limit":10.50,"prices":{"acme/large":{"input":0.10,"output":2}}} ` +
		`{"limit":1,"prices":{"own":{"input":3}}} {}`
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNumbersAreExact: numbers that JSON can write are passed on as they were written;
// all others keep their value.
func TestNumbersAreExact(t *testing.T) {
	for text, want := range map[string]string{
		"10.50": "10.50", "0.1": "0.1", "1e3": "1e3", "-7": "-7",
		"123456789012345678901234567890": "123456789012345678901234567890",
		"0x1F":                           "31", ".5": "0.5", "+3": "3", `"10.50"`: `"10.50"`, "1_000": "1000",
		"true": "true",
	} {
		f, err := config.Parse("c.yaml", []byte("agents:\n  - name: a\n    params: {v: "+text+"}\n"), known(), noFiles)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := json.Marshal(askedOf(t, f.Agents[0].Models[0]).Params)
		if err != nil || string(got) != `{"v":`+want+`}` {
			t.Errorf("%s: got %s, want %s, %v", text, got, want, err)
		}
	}
}
