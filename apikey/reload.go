package apikey

import (
	"maps"
	"slices"
)

// Change is what a [Keys.Reload] has changed. Each member has the names of keys, as
// "tenant/user", sorted; a user with several keys may occur several times.
type Change struct {
	// Added are new keys.
	Added []string
	// Removed are keys that are no longer valid.
	Removed []string
	// Changed are keys with another user or other rights than before.
	Changed []string
}

// Reload reads the list again that was given to [Parse], with the files that it names. A
// key that is gone, or has other rights, is no longer valid as it was, and its open
// streams end. If there is a mistake in the list, all keys stay as they are.
func (k *Keys) Reload() (Change, error) {
	k.reload.Lock()
	defer k.reload.Unlock()
	var change Change
	fresh, err := k.read()
	if err != nil {
		return change, err
	}
	old := k.current.Load().entries()
	var over []*entry
	for _, candidates := range fresh.byIndex {
		for i, e := range candidates {
			was := old[e.digest]
			delete(old, e.digest)
			switch {
			case was == nil:
				change.Added = append(change.Added, formatName(e.principal))
			case was.format() == e.format():
				candidates[i] = was // its streams go on
			default:
				change.Changed = append(change.Changed, formatName(e.principal))
				over = append(over, was)
			}
		}
	}
	for _, gone := range old {
		change.Removed = append(change.Removed, formatName(gone.principal))
		over = append(over, gone)
	}
	// The new list first: who is cut off and comes back must find it.
	k.current.Store(fresh)
	for _, e := range over {
		e.revoke()
	}
	for _, names := range [][]string{change.Added, change.Removed, change.Changed} {
		slices.Sort(names)
	}
	return change, nil
}

// entries returns all entries by their digest.
func (t *table) entries() map[digest]*entry {
	all := make(map[digest]*entry, t.count)
	for candidates := range maps.Values(t.byIndex) {
		for _, e := range candidates {
			all[e.digest] = e
		}
	}
	return all
}

// format returns the entry without its digest, as Parse reads it.
func (e *entry) format() string { return formatName(e.principal) + formatRights(e.principal.Rights) }
