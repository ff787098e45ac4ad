// Package prompttest is a fake of a model's provider that caches as providers do: it keeps
// of each thread what the last request had besides its volatile tail, and looks how much of
// that the next request begins with. It answers by the plan that a user's message has, in
// the form of one of four APIs.
package prompttest

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// Provider is a fake of a provider. It is an [http.Handler].
type Provider struct {
	// Format is the API that it has.
	Format Format
	// Pause is how long it waits before each event.
	Pause time.Duration
	// Breaks is how many answers go by until one breaks off; 0 for none.
	Breaks int

	mu      sync.Mutex
	threads map[string]*asked
	kills   int
	counts  Counts
	answers int
}

// asked is the last request of a thread.
type asked struct {
	stable string
	kills  int
	// said are the facts of the frontend; while they stay the same and stand among the
	// messages, all of bare is repeated.
	said, bare string
}

// Counts are what a provider has seen.
type Counts struct {
	// Requests are all, Again those with one before of the same thread, and After those
	// of them between which and the one before a process was killed.
	Requests, Again, After int
	// Bytes is how long the requests before were, without their tails, and Repeated how
	// much of that the next ones began with.
	Bytes, Repeated int64
	// Whole are the requests that began with all of the one before.
	Whole int
	// Fouls say where the others parted; the first few.
	Fouls []string
}

// maxFouls bounds what is kept of them.
const maxFouls = 5

// Killed says that a process was killed.
func (p *Provider) Killed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
}

// Counts returns what it has seen so far.
func (p *Provider) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

var (
	threadOf = regexp.MustCompile(`\(thread ([a-z0-9-]+)\)`)
	planOf   = regexp.MustCompile(`plan: ([a-z |]*);`)
)

// ServeHTTP implements [http.Handler].
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	read, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has died
	}
	body := string(read)
	thread := threadOf.FindStringSubmatch(body)
	if thread == nil {
		http.Error(w, `{"error":{"message":"no thread"}}`, http.StatusBadRequest)
		return
	}
	bare := p.Format.bare(body)
	serial := p.note(thread[1], bare)
	w.Header().Set("Content-Type", "text/event-stream")
	events := p.Format.write(answerOf(p.Format, bare, serial))
	if p.Breaks > 0 && serial%p.Breaks == 0 {
		events = events[:len(events)/2]
	}
	for _, event := range events {
		wait.Pass(p.Pause) // a model takes its time; nothing waits for that
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

// note compares a request with the one before, and returns the number of its answer.
func (p *Provider) note(thread, bare string) (serial int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.threads == nil {
		p.threads = map[string]*asked{}
	}
	p.answers++
	p.counts.Requests++
	shown := p.Format.withoutState(bare)
	now := &asked{
		stable: p.Format.stable(shown),
		kills:  p.kills,
		said:   said(shown),
		bare:   strings.TrimRight(shown, "]}"),
	}
	if last := p.threads[thread]; last != nil {
		if last.said == now.said && !strings.HasSuffix(last.bare, last.said+`"`) &&
			!strings.HasSuffix(last.bare, last.said) {
			last.stable = last.bare
		}
		same := common(last.stable, bare)
		p.counts.Again++
		p.counts.Bytes += int64(len(last.stable))
		p.counts.Repeated += int64(same)
		if last.kills != p.kills {
			p.counts.After++
		}
		if same == len(last.stable) {
			p.counts.Whole++
		} else if len(p.counts.Fouls) < maxFouls {
			p.counts.Fouls = append(p.counts.Fouls,
				fmt.Sprintf("%s %s parts after %d of %d bytes:\n%s\nwas\n%s", p.Format, thread, same, len(last.stable),
					around(bare, same), around(last.stable, same)))
		}
	}
	p.threads[thread] = now
	return p.answers
}

// common returns how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// around returns the part of a text around a place.
func around(text string, at int) string {
	return text[max(0, at-150):min(len(text), at+150)]
}

// Call is a call of an answer.
type Call struct{ ID, Name, Arguments string }

// Answer is what the provider says.
type Answer struct {
	Serial int
	Text   string
	Calls  []Call
}

// answerOf is the next step of the plan: one answer for each group of calls, and then one
// that says that all is done. The arguments are written as models write them.
func answerOf(f Format, bare string, serial int) Answer {
	a := Answer{Serial: serial, Text: fmt.Sprintf("<b>Answer</b> %d: é, 🙂 & \u2028 \"so\"\n", serial)}
	plans := planOf.FindAllStringSubmatchIndex(bare, -1)
	if len(plans) == 0 {
		return a
	}
	plan := plans[len(plans)-1]
	step := strings.Count(bare[plan[1]:], f.answered())
	groups := strings.Split(bare[plan[2]:plan[3]], "|")
	if step >= len(groups) {
		return a
	}
	for i, name := range strings.Fields(groups[step]) {
		a.Calls = append(a.Calls, Call{
			ID:   fmt.Sprintf("call_%d_%d", serial, i),
			Name: name,
			Arguments: fmt.Sprintf(`{ "n": %d.50,"text":"<%s> & \u2028é", "more": { "b": 1e3, "a": [1,  2] } }`,
				serial, name),
		})
	}
	return a
}
