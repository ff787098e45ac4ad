package simulate

import (
	"math/rand/v2"
	"strings"
)

// The chooser draws the next step of all that can happen, or reads it from a script.

// choice is something that can happen next.
type choice struct {
	weight float64
	do     func()
	parts  [5]string // of its name: most are never read
}

// name returns its name.
func (c *choice) name() string { return strings.Join(c.parts[:], "") }

// chooser chooses by a seed, or by a script.
type chooser struct {
	rand     *rand.Rand
	script   []string
	scripted bool
	taken    []string
}

// choose returns what happens next; nil if nothing does, or if the script is over.
func (c *chooser) choose(choices []choice) *choice {
	pick := c.drawn
	if c.scripted {
		pick = c.written
	}
	next := pick(choices)
	if next != nil {
		c.taken = append(c.taken, next.name())
	}
	return next
}

// written returns the next step of the script that is possible.
func (c *chooser) written(choices []choice) *choice {
	for len(c.script) > 0 {
		name := c.script[0]
		c.script = c.script[1:]
		for i := range choices {
			if choices[i].name() == name {
				return &choices[i]
			}
		}
	}
	return nil
}

// drawn draws one.
func (c *chooser) drawn(choices []choice) *choice {
	sum := 0.0
	for i := range choices {
		sum += choices[i].weight
	}
	if sum == 0 {
		return nil
	}
	at := c.rand.Float64() * sum
	for i := range choices {
		if at -= choices[i].weight; at < 0 {
			return &choices[i]
		}
	}
	return &choices[len(choices)-1]
}
