package simulate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// The requests that clients, the service and operators can make next.

// requests adds what clients can do.
func (o *options) requests() {
	for _, c := range append(slices.Clone(o.play.clients), o.play.asides...) {
		if c.reads() {
			weight := 0.3
			if c.server.isDead() {
				weight = 0
			}
			o.add(weight, c.leave, c.name, " is cut off")
		}
	}
	for _, c := range o.play.clients {
		if slices.Contains(o.w.forks, c.thread) && o.w.lacks(c.thread) {
			continue // it comes when the fork is made
		}
		for _, s := range o.w.servers {
			if s.serves() && !s.suspended.Load() {
				o.request(c, s)
				o.branches(c, s)
				o.brings(c, s)
				o.aside(c, s)
			}
		}
	}
	for _, s := range o.w.servers {
		if s.serves() && !s.suspended.Load() {
			o.outside(s)
			o.upkeep(s)
			o.keeping(s)
			o.shared(s)
		}
	}
}

// request adds what a client can do at a server.
func (o *options) request(c *client, s *server) {
	at := " at " + s.name
	if c.page.run != "" && c.page.cursor.Number > 0 && !c.page.over {
		o.add(0.1, func() { c.cancel(s) }, c.name, " cancels", at)
	}
	if c.reads() {
		return
	}
	if c.posts < maxPosts {
		weight := 2.0
		if c.posts > 0 {
			weight = 0.6
		}
		if c.posts == 0 && slices.Contains(o.w.forks, c.thread) {
			weight = 20 // it comes late, and little time is left
		}
		o.add(weight, func() { c.say(s, "") }, c.name, " posts", at)
		if o.w.plan.extras.results {
			o.add(0.5*weight, func() { c.call(s) }, c.name, " posts for a result", at)
		}
		o.add(0.2*weight, func() {
			c.say(s, `"onBusy":"cancel_and_run","onUnfinished":"abandon","onInterrupted":"decline"`)
		}, c.name, " posts and cancels", at)
	}
	if c.sent < maxRequests && c.posts > 0 {
		o.add(0.4, func() { c.post(s, c.input("")) }, c.name, " posts nothing", at)
		o.add(0.4, func() { c.post(s, c.last) }, c.name, " posts again", at)
		if len(c.page.open) > 0 {
			o.add(2, func() { c.answer(s, true) }, c.name, " says yes", at)
			o.add(0.5, func() { c.answer(s, false) }, c.name, " says no", at)
			o.add(0.3, func() { c.differ(s) }, c.name, " says something else", at)
		}
	}
	o.add(0.3, func() { c.attach(s) }, c.name, " attaches", at)
	if c.page.run != "" && c.page.cursor.Number > 0 {
		o.add(1, func() { c.resume(s) }, c.name, " comes back", at)
		o.add(0.4, func() { c.goOn(s) }, c.name, " comes back to the thread", at)
		if c.last != nil && c.page.asked == c.last.RunID { // a cursor is sent with the request that it is from
			o.add(0.4, func() { c.repost(s) }, c.name, " comes back with its request", at)
		}
	}
}

// branches adds what a page can do that shows the whole conversation.
func (o *options) branches(c *client, s *server) {
	if !o.w.plan.extras.branches || c.reads() || c.sent >= maxRequests || c.posts == 0 {
		return
	}
	at := " at " + s.name
	o.add(0.3, func() { c.branch(s, users(-1, false)) }, c.name, " has it answered again", at)
	o.add(0.3, func() { c.branch(s, users(-1, true)) }, c.name, " edits the last message", at)
	o.add(0.3, func() { c.branch(s, users(0, true)) }, c.name, " edits the first message", at)
	o.add(0.5, func() { c.branch(s, (*client).elsewhere) }, c.name, " goes back to another branch", at)
}

// brings adds that a page brings the results of its own tool.
func (o *options) brings(c *client, s *server) {
	if len(c.page.pending) == 0 || c.reads() || c.sent >= maxRequests {
		return
	}
	at := " at " + s.name
	o.add(2, func() { c.bring(s, len(c.page.pending)) }, c.name, " brings its results", at)
	o.add(1, func() { c.bring(s, 1) }, c.name, " brings one result", at)
}

// aside adds that a page asks beside its conversation.
func (o *options) aside(c *client, s *server) {
	if o.w.plan.extras.asides && len(o.play.asides) < maxAsides {
		o.add(0.3, func() { o.play.askAside(s) }, c.name, " asks aside at ", s.name)
	}
}

// outside adds what the service can do at a server.
func (o *options) outside(s *server) {
	if !o.w.plan.extras.outside {
		return
	}
	o.w.mu.Lock()
	all := slices.SortedFunc(maps.Values(o.w.truth.handed), func(a, b *handed) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.id, b.id))
	})
	o.w.mu.Unlock()
	for _, h := range all {
		if h.sent >= maxResults {
			continue
		}
		weight, name := 1/float64(1+2*h.sent), h.id+" of "+h.thread+" at "+s.name
		send := func(result string, fails, byUser bool) func() {
			return func() { s.finish(h, json.RawMessage(result), fails, byUser) }
		}
		o.add(weight, send(`{"by":"it"}`, false, false), "the service finishes ", name)
		o.add(0.3*weight, send(`{"by":"another"}`, false, false), "the service finishes otherwise ", name)
		o.add(0.2*weight, send(`"it broke"`, true, false), "the service fails ", name)
		o.add(0.1*weight, send(`"a text"`, false, false), "the service says what does not fit ", name)
		o.add(0.3*weight, send(`{"by":"her"}`, false, true), "the user finishes ", name)
	}
	for _, id := range o.w.ids() {
		o.add(0.1, func() { s.lookAfter(id) }, "upkeep looks after ", id, " at ", s.name)
	}
}

// upkeep adds what operators can do at a server.
func (o *options) upkeep(s *server) {
	if !o.w.plan.extras.upkeep {
		return
	}
	at := " at " + s.name
	for _, id := range o.w.ids() {
		o.add(0.4, func() { s.describe(id) }, "an operator describes ", id, at)
		o.add(0.2, func() { s.lookAt(id) }, "an operator looks at ", id, at)
	}
	o.add(0.1, func() { s.callByHand(`{"n":1}`) }, "an operator calls a tool", at)
	o.add(0.05, func() { s.callByHand(`{"n":"one"}`) }, "an operator calls a tool wrongly", at)
	if !s.variant.without {
		o.add(0.3, s.reload, "an operator reloads", at)
	}
}

// The most that a client does.
const (
	maxPosts    = 3
	maxRequests = 8
)
