package loop

import "github.com/holdfast-agents/holdfast/store"

// coming are the threads that this process is about to make. Nobody can have left anything
// for a thread that does not exist, so the run that makes it need not look into its inbox,
// unless something is posted between its first commit and the moment in which it is listed.
// The value says whether that has happened. The engine's mu guards it.
type coming map[store.ThreadKey]bool

// expect notes that the commit is about to make its thread, if it is, until the caller calls
// what it returns.
func (e *Engine) expect(c *store.Commit) (done func()) {
	if c.Expect != (store.Position{Next: 1}) {
		return func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.coming[c.Key] = false
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.coming, c.Key)
	}
}

// posted notes a post to a thread, or to any if key is zero: some may have been missed.
func (c coming) posted(key store.ThreadKey) {
	for k := range c {
		if k == key || key == (store.ThreadKey{}) {
			c[k] = true
		}
	}
}

// noMail reports whether the thread is coming and nothing has been posted to it.
func (c coming) noMail(key store.ThreadKey) bool {
	posted, is := c[key]
	return is && !posted
}
