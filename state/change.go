package state

import (
	"maps"
	"slices"
	"strings"
)

// SchemaChange is the difference between the schema of a checkpoint and that of the
// program that continues from it.
type SchemaChange struct {
	// Upgrade: the checkpoint is older than schemas.
	Upgrade bool `json:"isUpgrade"`
	// Old is the checkpoint's signature; empty for an upgrade.
	Old string `json:"oldSignature"`
	// New is the program's signature.
	New string `json:"newSignature"`
	// Removed are the states that only the checkpoint has, sorted by name.
	Removed []string `json:"removed"`
	// Added are the states that only the program has, sorted by name.
	Added []string `json:"added"`
	// Changed are the states whose versions differ, sorted by name.
	Changed []VersionChange `json:"changed"`
	// TooNew are those of Changed whose version this program does not know.
	TooNew []VersionChange `json:"-"`
}

// VersionChange is a state whose version has changed.
type VersionChange struct {
	// Name is the state's "owner.name".
	Name string `json:"name"`
	// From is the version that was stored.
	From int `json:"from"`
	// To is the version of this program.
	To int `json:"to"`
}

// Any reports whether there is a difference.
func (c *SchemaChange) Any() bool {
	return c.Upgrade || len(c.Removed)+len(c.Added)+len(c.Changed) > 0
}

// Compare returns what has changed since the states were written. It compares the
// signature and the versions of the schema that they were written under, and looks
// for values that are newer than this program. It does not report an older value
// under a schema that is up to date: see [Schema.Migrations].
func (s *Schema) Compare(states *States) SchemaChange {
	old := states.Info()
	c := SchemaChange{Old: old.Signature, New: s.info.Signature}
	if states == nil || states.info != s.info {
		c.Upgrade = old.Version == 0
		if !c.Upgrade {
			s.compareNames(&c, old)
		}
	}
	s.compareValues(&c, states)
	return c
}

// compareValues adds the values that are too new.
func (s *Schema) compareValues(c *SchemaChange, states *States) {
	states.eachStored(func(def *stateDef, kept *stored) {
		if kept.version <= def.version {
			return
		}
		change := VersionChange{def.name, kept.version, def.version}
		c.TooNew = append(c.TooNew, change)
		// The version of the value takes precedence over that of its schema.
		c.Changed = slices.DeleteFunc(c.Changed, func(o VersionChange) bool { return o.Name == change.Name })
		c.Changed = append(c.Changed, change)
	})
	if c.TooNew != nil {
		slices.SortFunc(c.TooNew, byStateName)
		slices.SortFunc(c.Changed, byStateName)
	}
}

func byStateName(a, b VersionChange) int { return strings.Compare(a.Name, b.Name) }

// compareNames goes through the names of both schemas in order.
func (s *Schema) compareNames(c *SchemaChange, old SchemaInfo) {
	if old.Signature == s.info.Signature && maps.Equal(old.StateVersions, s.info.StateVersions) {
		return
	}
	names := strings.Split(old.Signature, ",")
	slices.Sort(names) // they are sorted already, unless another program wrote them
	names = slices.Compact(names)
	if names[0] == "" {
		names = names[1:]
	}
	i, j := 0, 0
	for i < len(names) || j < len(s.defs) {
		switch {
		case j == len(s.defs) || i < len(names) && names[i] < s.defs[j].name:
			c.Removed = append(c.Removed, names[i])
			i++
		case i == len(names) || names[i] > s.defs[j].name:
			c.Added = append(c.Added, s.defs[j].name)
			j++
		default:
			if from, to := old.StateVersions[names[i]], s.defs[j].version; from != to {
				c.Changed = append(c.Changed, VersionChange{names[i], from, to})
			}
			i++
			j++
		}
	}
}

// eachStored calls f for every value in a place that is still as it was stored.
func (s *States) eachStored(f func(*stateDef, *stored)) {
	if s == nil {
		return
	}
	s.each(func(c cell) {
		if kept := c.stored(); kept != nil {
			f(c.definition(), kept)
		}
	})
}

// PendingMigration is a stored state that will be migrated when it is next read.
type PendingMigration struct {
	VersionChange
	// Missing is the version from which there is no migration to the next; 0 if no
	// migration is missing.
	Missing int
}

// Migrations returns the migrations that the states need, sorted by name. States
// that are newer than this schema are included, with From above To.
func (s *Schema) Migrations(states *States) []PendingMigration {
	var out []PendingMigration
	states.eachStored(func(def *stateDef, kept *stored) {
		if kept.version == def.version {
			return
		}
		p := PendingMigration{VersionChange: VersionChange{def.name, kept.version, def.version}}
		for v := kept.version; v < def.version && p.Missing == 0; v++ {
			if def.migrations[v] == nil {
				p.Missing = v
			}
		}
		out = append(out, p)
	})
	slices.SortFunc(out, func(a, b PendingMigration) int { return byStateName(a.VersionChange, b.VersionChange) })
	return out
}
