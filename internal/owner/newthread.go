package owner

import (
	"sync"

	"github.com/holdfast-agents/holdfast/store"
)

// coming are the threads that this process is about to make. Nobody can have left anything
// for a thread that does not exist, so the run that makes it need not look into its inbox,
// unless something is posted between its first commit and the moment in which it is listed.
type coming struct {
	mu      sync.Mutex
	threads map[store.ThreadKey]bool // the value says whether that has happened
}

// expect notes that the commit is about to make its thread, if it is, until the caller calls
// what it returns.
func (c *coming) expect(commit *store.Commit) (done func()) {
	if commit.Expect != (store.Position{Next: 1}) {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads[commit.Key] = false
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.threads, commit.Key)
	}
}

// posted notes a post to a thread, or to any if key is zero: some may have been missed.
func (c *coming) posted(key store.ThreadKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.threads {
		if k == key || key == (store.ThreadKey{}) {
			c.threads[k] = true
		}
	}
}

// noMail reports whether the thread is coming and nothing has been posted to it.
func (c *coming) noMail(key store.ThreadKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	posted, is := c.threads[key]
	return is && !posted
}
