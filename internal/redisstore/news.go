package redisstore

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// News among processes: that they have begun to listen, claim threads, have retired, or have
// left a thread. News that nobody hears only make something happen later.

// Messages on the channel of the peers begin with one of these.
const (
	newsCame   = "came"    // by a process that has begun to listen
	newsClaims = "claims " // and the process, which says that it claims threads
	newsGone   = "gone "   // and the process, which has retired
	newsLeft   = "left "   // and the thread's tag, the process that has left it, and the heir
	// newsMissing is by a process that misses another one, so that all look.
	newsMissing = "missing"
)

// heard passes on what was published on the channel of the peers. A message that cannot be
// read is of a newer version, and only makes something happen later.
func (p *peers) heard(text string) {
	switch text {
	case newsCame:
		p.came()
		return
	case newsMissing:
		p.hurry()
		return
	}
	if process, ok := strings.CutPrefix(text, newsClaims); ok {
		p.claimed(process)
		return
	}
	if process, ok := strings.CutPrefix(text, newsGone); ok {
		p.watchers.Departed(store.Departure{Process: process, Retired: true}, "")
		return
	}
	left, ok := strings.CutPrefix(text, newsLeft)
	parts := strings.SplitN(left, " ", 3)
	if !ok || len(parts) != 3 {
		return
	}
	key, ok := parseTag(parts[0])
	process, err := url.QueryUnescape(parts[1])
	if ok && err == nil {
		p.watchers.Departed(store.Departure{Process: process, Thread: key}, cmp.Or(parts[2], noHeir))
	}
}

// noHeir is the heir of a thread that nobody could be named for. No process is called so.
const noHeir = "\x00"

// tell publishes news for the other processes. News that nobody hears only make something
// happen later.
func (p *peers) tell(news string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.running.Go(func() { p.client.Publish(p.ctx, p.keys.peersChannel(), news) })
	}
}

// joined says that this process hears from now on what the others say.
func (p *peers) joined() { p.tell(newsCame) }

// came notes that another process hears from now on what is told, or hears it again after its
// connection broke. That this one owns threads, if it has said so not long ago, is told again.
func (p *peers) came() {
	p.watchers.elders.came()
	p.mu.Lock()
	own, again := p.own, p.own != "" && time.Since(p.said) < p.sayEvery()
	p.crowd.stale = true
	p.mu.Unlock()
	if again {
		p.tell(newsClaims + own)
	}
}

// claims reports whether the process is to say now that it claims threads.
func (p *peers) claims(process string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if process != p.own || now.Sub(p.said) < p.sayEvery() {
		return false
	}
	p.said = now
	return true
}

// claimed notes that another process has said that it claims threads.
func (p *peers) claimed(process string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if process == p.own {
		return
	}
	if p.judge.watch(process, time.Now()) {
		p.crowd.stale = true
		p.change()
	}
	p.othersOwn()
}
