package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/redis/go-redis/v9"
)

// The version before publishes the commits of a thread on its ordinary channel alone, and only until w.
// So as long as one of its processes lives, a thread is asked by w, and then every version publishes it
// there, where all watchers listen. Otherwise it is asked by W. Each process says beside its lease, in
// "shards:PROCESS", that it looks at W; it also listens to the channel of what is posted to its threads, which
// the version before does not.

const (
	// eldersEvery is how often it is looked who has not said it, while threads are watched or posted to.
	eldersEvery = 10 * time.Second
	// eldersAfter is how long it is looked every eldersSoon after a process has come, which says that it
	// listens before it has a lease.
	eldersAfter, eldersSoon = 10 * time.Second, time.Second
)

// elders knows whether there are processes of the version before. All methods may be called concurrently.
type elders struct {
	client redis.UniversalClient
	keys   []string
	script *redis.Script

	arrival chan struct{} // a process has come

	mu      sync.Mutex   // held while one looks, so that others wait for what it sees
	arrived clock.Moment // when the last one has come
	looked  clock.Moment
	present bool
}

func newElders(client redis.UniversalClient, k keys) *elders {
	return &elders{
		client:  client,
		keys:    []string{k.leases(), k.about()},
		script:  redis.NewScript(eldersLua),
		arrival: make(chan struct{}, 1),
	}
}

// came notes that a process has come, which may be one of them.
func (e *elders) came() {
	select {
	case e.arrival <- struct{}{}:
	default:
	}
}

// look reports whether there is one, as it was a few seconds ago at most. If that is not known, there
// may be.
func (e *elders) look(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.arrival:
		e.arrived, e.looked = clock.Now(), clock.Moment{}
	default:
	}
	recent := !e.arrived.Never() && e.arrived.Ran() < eldersAfter
	if !e.looked.Never() && (e.looked.Ran() < eldersSoon || !recent && e.looked.Ran() < eldersEvery) {
		return e.present
	}
	e.looked = clock.Now()
	n, err := e.script.Run(ctx, e.client, e.keys).Int()
	e.present = err != nil || n > 0
	return e.present
}

// eldersLua returns how many living processes have not said that they look at W. KEYS: leases, about.
const eldersLua = timeLua + `
local living = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')
local silent = 0
for from = 1, #living, 1000 do
  local fields = {}
  for n = from, math.min(from + 999, #living) do fields[#fields + 1] = 'shards:' .. living[n] end
  for _, said in ipairs(redis.call('HMGET', KEYS[2], unpack(fields))) do
    if not said then silent = silent + 1 end
  end
end
return silent
`
