package server

import (
	"maps"
	"slices"
)

// Changes is what is different in one agents file and the next: names, and nothing of what
// the files say.
type Changes struct {
	// Added, Removed and Changed are agents. One has changed if its entry in the file has, or
	// its instructions.
	Added, Removed, Changed []string
	// Others are what else has changed: keys of the file, such as limits, prices and
	// mcpServers, and the paths of files that it names; and default, if another agent is the
	// first now.
	Others []string
}

// Changes returns what is different from what was loaded before.
func (l *Loaded) Changes(before *Loaded) Changes {
	c := Changes{}
	c.Added, c.Removed, c.Changed = compared(before.sums.Agents, l.sums.Agents)
	added, removed, changed := compared(before.sums.Others, l.sums.Others)
	c.Others = slices.Concat(added, removed, changed)
	if l.Agents[0].Name != before.Agents[0].Name {
		c.Others = append(c.Others, "default")
	}
	slices.Sort(c.Others)
	return c
}

// compared returns what is different in two maps of sums, sorted.
func compared(before, after map[string]string) (added, removed, changed []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch was, there := before[name]; {
		case !there:
			added = append(added, name)
		case was != after[name]:
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			removed = append(removed, name)
		}
	}
	return added, removed, changed
}
