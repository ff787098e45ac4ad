package filestore

import (
	"errors"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The content of a commit's batch, after its check.

// write follows check: it puts into the batch what the commit says.
func (c *commit) write(t *txn) error {
	isNew := c.thread == nil
	if isNew {
		number := c.number
		if number == 0 {
			t.numbers.thread++
			number = t.numbers.thread
		} else if err := t.remove(stepsKey(number)); err != nil {
			return err
		}
		c.written = true
		c.thread = &thread{number: number, listings: &[]store.Listing{}}
		t.hot.put(c.Key, c.thread)
		if err := t.set(nameKey(c.Key), numbered(0, c.thread.number)[1:]); err != nil {
			return err
		}
	}
	h := c.newHead()
	c.thread.head = h
	if err := t.set(sectionKey(c.thread.number, sectionHead), h.encode()); err != nil {
		return err
	}
	steps := []func(*txn) error{c.forget, c.writeLog, c.writeState, c.writeParent, c.writeValues}
	for _, step := range steps {
		if err := step(t); err != nil {
			return err
		}
	}
	if err := c.drop(t, sectionRecords, c.old.trimmed, h.trimmed); err != nil {
		return err
	}
	if err := c.drop(t, sectionInbox, c.old.seen, h.seen); err != nil {
		return err
	}
	if err := c.index(t, isNew); err != nil {
		return err
	}
	if err := c.list(t); err != nil {
		return err
	}
	return c.own(t)
}

// newHead is the head as the commit leaves it.
func (c *commit) newHead() *head {
	return &head{
		Head: store.Head{
			User:      c.User,
			Fence:     c.Fence,
			Process:   c.Process,
			ETag:      c.ID,
			Next:      c.old.Next + uint64(len(c.Records)),
			UpdatedAt: c.UpdatedAt,
		},
		messages: c.old.messages + uint64(len(c.Messages)),
		posted:   c.old.posted,
		seen:     max(c.old.seen, min(c.InboxSeen, c.old.posted)),
		trimmed:  max(c.old.trimmed, c.Trim),
	}
}

// forget removes messages.
func (c *commit) forget(t *txn) error {
	for _, id := range c.Forget {
		idKey := messageIDKey(c.thread.number, id)
		place, err := t.number(idKey)
		if err != nil {
			return err
		}
		if place == 0 {
			continue
		}
		if err := t.remove(placeKey(c.thread.number, sectionMessages, place)); err != nil {
			return err
		}
		if err := t.remove(idKey); err != nil {
			return err
		}
	}
	return nil
}

// writeLog appends the records and the messages.
func (c *commit) writeLog(t *txn) error {
	for i, entry := range c.records {
		if err := t.set(placeKey(c.thread.number, sectionRecords, c.old.Next+uint64(i)), entry); err != nil {
			return err
		}
	}
	if c.number != 0 {
		return nil
	}
	return c.writeMessages(t, c.thread.number, c.old.messages, 0, len(c.messages))
}

// writeMessages appends some of the messages to the thread with the number, which has so
// many before the commit.
func (c *commit) writeMessages(t *txn, thread, before uint64, from, to int) error {
	for i := from; i < to; i++ {
		place := placeKey(thread, sectionMessages, before+uint64(i)+1)
		if err := t.set(place, c.messages[i]); err != nil {
			return err
		}
		if err := t.set(messageIDKey(thread, c.Messages[i].ID), place[len(place)-8:]); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the records, or the inbox items, after one number up to another.
func (c *commit) drop(t *txn, section byte, after, last uint64) error {
	if last <= after {
		return nil
	}
	if last-after <= fewKeys {
		for n := after + 1; n <= last; n++ {
			if err := t.remove(placeKey(c.thread.number, section, n)); err != nil {
				return err
			}
		}
		return nil
	}
	return t.removeRange(placeKey(c.thread.number, section, after+1), placeKey(c.thread.number, section, last+1))
}

func (c *commit) writeParent(t *txn) error {
	if c.Parent == "" {
		return nil
	}
	if err := t.set(sectionKey(c.thread.number, sectionParent), []byte(c.Parent)); err != nil {
		return err
	}
	return t.set(childKey(c.Key.Tenant, c.Parent, c.Key.Thread), nil)
}

func (c *commit) writeState(t *txn) error {
	if c.State == nil {
		return nil
	}
	return t.set(sectionKey(c.thread.number, sectionState), c.state)
}

// writeValues clears, puts, deletes and trims, in this order.
func (c *commit) writeValues(t *txn) error {
	for _, kind := range c.Clear {
		if err := c.keep(t, kind, 0); err != nil {
			return err
		}
	}
	for i, v := range c.Put {
		if err := t.set(valueKey(c.thread.number, v.Kind, v.ID), c.values[i]); err != nil {
			return err
		}
		c.thread.note(v.Kind, v.ID)
	}
	for _, v := range c.Delete {
		if err := t.remove(valueKey(c.thread.number, v.Kind, v.ID)); err != nil {
			return err
		}
		c.thread.drop(v.Kind, v.ID)
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Keep)) {
		if err := c.keep(t, kind, c.Keep[kind]); err != nil {
			return err
		}
	}
	return nil
}

// keep removes all values of a kind but the newest.
func (c *commit) keep(t *txn, kind store.Kind, n int) error {
	ids, known := c.thread.ids[kind]
	if !known {
		var err error
		if ids, err = t.ids(c.thread.number, kind); err != nil {
			return err
		}
	}
	doomed := ids[:max(0, len(ids)-max(n, 0))]
	for _, id := range doomed {
		if err := t.remove(valueKey(c.thread.number, kind, id)); err != nil {
			return err
		}
	}
	c.thread.remember(kind, slices.Delete(ids, 0, len(doomed)))
	return nil
}

// ids are those of all values of a kind, sorted.
func (t *txn) ids(thread uint64, kind store.Kind) (ids []string, err error) {
	prefix := kindPrefix(thread, kind)
	err = t.ascend(prefix, prefix, func(key, _ []byte) (bool, error) {
		ids = append(ids, string(key[len(prefix):]))
		return true, nil
	})
	return ids, err
}

// index moves the thread in the lists of its user and its tenant, if its minute or its user is
// another now.
func (c *commit) index(t *txn, isNew bool) error {
	before := holdfast.Principal{Tenant: c.Key.Tenant, User: c.old.User}
	now := holdfast.Principal{Tenant: c.Key.Tenant, User: c.User}
	was, is := minuteOf(c.old.UpdatedAt), minuteOf(c.UpdatedAt)
	if !isNew {
		if before == now && was == is {
			return nil
		}
		if err := errors.Join(t.remove(activeKey(before, was, c.thread.number)),
			t.remove(tenantKey(c.Key.Tenant, was, c.thread.number))); err != nil {
			return err
		}
	}
	return errors.Join(t.set(activeKey(now, is, c.thread.number), []byte(c.Key.Thread)),
		t.set(tenantKey(c.Key.Tenant, is, c.thread.number), tenantValue(c.Key, c.User)))
}

// own keeps the list of threads with an owner.
func (c *commit) own(t *txn) error {
	switch key := ownedKey(c.thread.number); {
	case c.Process == c.old.Process:
		return nil
	case c.Process == "":
		return t.remove(key)
	default:
		return t.set(key, append(appendName(appendName(nil, c.Key.Tenant), c.Key.Thread), c.Process...))
	}
}
