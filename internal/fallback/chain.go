package fallback

import (
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Model is one of the models that an agent may ask.
type Model struct {
	holdfast.Model
	// Name is what events, logs, metrics and a thread's state call it: "provider/model". No
	// two of an agent have the same one.
	Name string
	// Provider and ID are the parts of the name, as the provider knows them.
	Provider, ID string
	// Circuit is what circuits know it by.
	Circuit string
}

// Chain is the models of an agent, in the order in which they are asked.
type Chain []Model

// ChainOf returns the models of an agent. One that does not say whose it is gets the name
// "custom/AGENT", because it belongs to this agent alone.
func ChainOf(a *holdfast.Agent) Chain {
	chain, known := Chain{}, map[string]int{}
	for _, m := range append([]holdfast.Model{a.Model}, a.Fallbacks...) {
		c := Model{Model: m, Provider: "custom", ID: a.Name}
		if named, ok := m.(interface{ ModelName() (string, string) }); ok {
			if provider, model := named.ModelName(); provider != "" && model != "" {
				c.Provider, c.ID = provider, model
			}
		}
		c.Name = c.Provider + "/" + c.ID
		c.Circuit = c.Name
		if known[c.Name]++; known[c.Name] > 1 {
			c.Name = fmt.Sprintf("%s#%d", c.Name, known[c.Name])
		}
		if c.Provider == "custom" {
			c.Circuit = c.Name
		}
		if keyed, ok := m.(interface{ CircuitKey() string }); ok {
			c.Circuit += " " + keyed.CircuitKey()
		}
		chain = append(chain, c)
	}
	return chain
}

// Find returns the place of the model of that name: the first one's if the agent does not
// have it, or not any more.
func (c Chain) Find(name string) int {
	for i := range c {
		if c[i].Name == name {
			return i
		}
	}
	return 0
}

// Pick returns which model is asked: the one at now if its circuit is closed; else the next
// one with a closed circuit, in a circle; else the least bad, because circuits alone never
// end a run. Models for which over is true are not asked again. healthy tells whether the
// picked one's circuit is closed; the place is negative if no model is left.
func (c Chain) Pick(
	now int, over func(int) bool, open func(circuit string) (until time.Time, open bool),
) (at int, healthy bool) {
	at = -1
	var first time.Time
	for n := range c {
		i := (now + n) % len(c)
		if over(i) {
			continue
		}
		until, isOpen := open(c[i].Circuit)
		if !isOpen {
			return i, true
		}
		if at < 0 || until.Before(first) {
			at, first = i, until
		}
	}
	return at, false
}
