package simulate

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The truth about what has happened, kept apart from the store and from the servers, and the
// promises that are checked against it at the moment at which they could be broken.

// landed takes in a commit that the store has accepted. It reports false if it had landed
// before. The caller holds the lock.
func (w *World) landed(s *server, c *store.Commit) bool {
	k := w.truth.of(c.Key.Thread)
	if c.ID == k.position.ETag {
		return false
	}
	if c.Expect != k.position {
		w.violated("one owner writes", "%s has committed %s to %s at %+v, which is at %+v", s.name, c.ID, c.Key.Thread,
			c.Expect, k.position)
	}
	if c.Fence != k.position.Fence && c.Fence.Epoch <= k.position.Fence.Epoch {
		w.violated("fences rise", "%s follows %s on %s", c.Fence.Nonce, k.position.Fence.Nonce, c.Key.Thread)
	}
	if owner := k.process; owner != "" && owner != c.Process && c.Process != "" && c.Fence == k.position.Fence {
		w.violated("one owner writes", "%s belongs to %s and then to %s under one fence", c.Key.Thread, owner,
			c.Process)
	}
	if strings.HasPrefix(c.Key.Thread, aside) {
		w.violated("a side run is stored nowhere", "%s has committed %s to %s", s.name, c.ID, c.Key.Thread)
	}
	for _, id := range c.Forget {
		call := k.messages[id].result // whose id another one may get
		delete(k.results, call)
		delete(w.truth.handed, c.Key.Thread+" "+call)
	}
	for _, m := range c.Messages {
		k.messages[m.ID] = message{parent: m.Parent}
		delete(k.forgotten, m.ID)
		w.resulted(k, c.Key.Thread, m.ID, m.Data)
	}
	for i, data := range c.Records {
		cursor := store.Cursor{Number: c.Expect.Next + uint64(i), Tag: c.Fence.Tag()}
		k.records = append(k.records, store.Record{Cursor: cursor, Data: data})
		w.truth.entitled(k, data)
		if !w.untold {
			w.seen("%s %s %s", c.Key.Thread, cursor, describe(data))
		}
	}
	w.takenOver(k, c)
	k.position = store.Position{Fence: c.Fence, Next: c.Expect.Next + uint64(len(c.Records)), ETag: c.ID}
	k.process = c.Process
	if len(c.Forget) > 0 {
		if lost := k.lacks(c, w.base); lost != "" {
			w.violated(neededPromise, "%s has lost %s", c.Key.Thread, lost)
		}
	}
	if w.plan.extras.states {
		w.documented(k, c)
	}
	return true
}

// resulted notes a tool's result among the messages.
func (w *World) resulted(k *known, id, of string, data []byte) {
	m, err := agui.DecodeMessage(data)
	if err != nil || m.Role != string(holdfast.RoleTool) {
		return
	}
	one := k.messages[of]
	one.result = m.ToolCallID
	k.messages[of] = one
	for at := one.parent; at != ""; at = k.messages[at].parent {
		if k.messages[at].result == m.ToolCallID { // another branch may have one of its own
			w.violated("a call has one result", "%s in %s has two", m.ToolCallID, id)
			break
		}
	}
	k.results[m.ToolCallID] = thread.MarkOf(&m).Code
}

// started takes in that a tool begins to work.
func (w *World) started(s *server, call *holdfast.ToolCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen("%s starts %s %s in %s", s.name, call.Name, call.ID, call.Thread)
	if call.Thread == "" {
		return // it is made by hand
	}
	k := w.truth.of(call.Thread)
	if k.process != s.process && k.strays(s) {
		return
	}
	if k.process != s.process {
		w.violated("one owner starts tools", "%s starts %s of %s, which belongs to %q", s.process, call.Name,
			call.Thread, k.process)
	}
	if code, has := k.results[call.ID]; has && !k.rewound {
		w.violated("a finished tool never runs again", "%s %s starts after its result %q", call.Name, call.ID, code)
	}
	if effects[call.Name] == holdfast.EffectPure {
		return
	}
	if _, err := w.base.Value(context.Background(), keyOf(call.Thread), store.KindIntent, call.ID); err != nil {
		w.violated("the intent is stored first", "%s %s starts without", call.Name, call.ID)
	}
	key := call.Key
	if call.Name == "leave" { // a fork asks for leave of its own, and each yes starts the call
		key += " in " + call.Thread
	}
	d := w.truth.calls[key]
	if d == nil {
		d = &done{id: call.ID, name: call.Name, arguments: string(call.Arguments)}
		w.truth.calls[key] = d
	}
	d.starts++
	if d.id != call.ID || d.name != call.Name || d.arguments != string(call.Arguments) {
		w.violated("a key belongs to one call", "%s %s %s has the key of %s %s %s", call.Name, call.ID, call.Arguments,
			d.name, d.id, d.arguments)
	}
	if effects[call.Name] != holdfast.EffectIdempotent && d.starts > 1 && !k.rewound {
		w.violated("once at most once", "%s %s has started %d times", call.Name, call.ID, d.starts)
	}
}

// finished takes in that a tool has done its work.
func (w *World) finished(call *holdfast.ToolCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.truth.calls[call.Key]; d != nil {
		d.ended = true
	}
}

// fateOf says what became of a call.
func (w *World) fateOf(call *holdfast.ToolCall) holdfast.Fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch d := w.truth.calls[call.Key]; {
	case d == nil:
		return holdfast.FateNotDone
	case d.ended:
		return holdfast.FateDone
	}
	return holdfast.FateUnknown
}

// modelAsked takes in that a model is asked.
func (w *World) modelAsked(s *server, req *holdfast.ModelRequest) {
	if s.isDead() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if wrong := wellFormed(req.Messages); wrong != "" {
		w.violated("histories are well formed", "%s: %s", req.Thread, wrong)
	}
	if strings.HasPrefix(req.Thread, aside) {
		return
	}
	k := w.truth.of(req.Thread)
	if k.process != s.process && s.mistaken.Load() && !k.taken[s.process].Never() {
		return // it learns that when it stores the answer
	}
	if k.process != s.process {
		w.violated("one owner asks models", "%s asks for %s, which belongs to %q", s.process, req.Thread, k.process)
	}
	before := ""
	for _, id := range idsOf(req.Messages) {
		if !k.has(id) {
			w.violated("what a model is asked is durable", "the message %s of %s is not", id, req.Thread)
		} else if before != "" && !k.follows(id, before) {
			w.violated("histories are well formed", "%s: %s is not on a branch with %s", req.Thread, id, before)
		}
		before = id
	}
	if denied := w.truth.denied(req); denied != "" {
		w.violated("nothing acknowledged is lost", "%s", denied)
	}
}

// budget is the account of the middleware.
const budget = "tokens"

// counted is a hook that sets an amount aside before a model is asked, and then says what was
// used.
func (s *server) counted(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			ledger, err := store.LedgerFrom(ctx)
			if err != nil {
				yield(holdfast.Delta{}, err)
				return
			}
			r := &store.Reservation{
				Tenant:  alice.Tenant,
				ID:      s.newID("res"),
				Now:     s.stamp().Time(),
				Entries: []store.Entry{{Account: budget, Amount: 10}},
			}
			if err := ledger.Reserve(ctx, r); err != nil {
				yield(holdfast.Delta{}, &holdfast.ModelError{Retryable: true, Err: err})
				return
			}
			for d, err := range next(ctx, req) {
				if !yield(d, err) {
					break
				}
			}
			for range 2 { // the second time if the answer was lost
				if ledger.Settle(context.WithoutCancel(ctx), alice.Tenant, r.ID, map[string]int64{budget: 3}) == nil {
					break
				}
			}
		}
	}
}

// count has the ledger looked at.
func (w *World) count() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.truth.counted = true
}

// reserve makes a reservation.
func (w *World) reserve(ctx context.Context, base store.Store, r *store.Reservation) error {
	err := base.Reserve(ctx, r)
	w.count()
	if err == nil && r.Entries[0].Account == budget {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.truth.ledger[r.ID] == nil {
			w.truth.ledger[r.ID] = &reserved{amount: r.Entries[0].Amount}
		}
	}
	return err
}

// settleLedger settles a reservation.
func (w *World) settleLedger(ctx context.Context, base store.Store, tenant, id string, actual map[string]int64) error {
	err := base.Settle(ctx, tenant, id, actual)
	w.count()
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r := w.truth.ledger[id]; r != nil && !r.settled {
			r.settled = true
			w.truth.spent += actual[budget]
		}
	}
	return err
}

// look checks what must hold whenever the world rests, if the store may have changed since the last look.
func (w *World) look() {
	if now := w.changes.Load(); now != w.looked {
		w.looked = now
		w.lookAt()
	}
}

// lookAtLedger compares the ledger with what was asked of it. The caller holds the lock.
func (w *World) lookAtLedger() {
	if !w.redis.counted() {
		return
	}
	w.truth.counted = false
	used, err := w.base.Used(context.Background(), alice.Tenant, []string{budget})
	want := w.truth.spent
	for _, r := range w.truth.ledger {
		if !r.settled {
			want += r.amount
		}
	}
	if err != nil || used[0] != want {
		w.violated("the ledger adds up", "it has %v, and should have %d (%v)", used, want, err)
	}
}

// lookAt checks what must hold whenever the world rests.
func (w *World) lookAt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.truth.counted || w.settled.Load() {
		w.lookAtLedger()
	}
	begun := map[string][]string{} // runs by thread
	for run, id := range w.truth.begun {
		begun[id] = append(begun[id], run)
	}
	for id, runs := range begun {
		found, err := w.base.ValuesOf(context.Background(), keyOf(id), store.KindRun, runs)
		if err == nil && len(found) == len(runs) {
			continue
		}
		for _, run := range runs {
			if !slices.ContainsFunc(found, func(v store.Value) bool { return v.ID == run }) {
				w.violated("nothing acknowledged is lost", "the run %s of %s is (%v)", run, id, err)
			}
		}
	}
}

// documented takes in what a commit makes of a thread's documents. The caller holds the lock.
func (w *World) documented(k *known, c *store.Commit) {
	k.docs.rewound = k.rewound
	for _, v := range k.docs.take(c, func(version string) (json.RawMessage, error) {
		return thread.Reader{Store: w.base}.Shared(context.Background(), c.Key, version)
	}) {
		w.violated(v.Promise, "%s: %s", c.Key.Thread, v.Detail)
	}
}
