package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// cutOffGrace is how long tools and handlers may take to notice that they were cut off.
const cutOffGrace = 500 * time.Millisecond

// handling is the requests that a front handles now.
type handling struct {
	mu   sync.Mutex
	now  map[*http.Request]bool
	none chan struct{} // closed when there are none; nil if nobody waits for that
}

// counted returns a handler whose requests are among those that are handled.
func (h *handling) counted(next http.Handler) http.Handler {
	h.now = map[*http.Request]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.now[r] = true
		h.mu.Unlock()
		defer h.ended(r)
		next.ServeHTTP(w, r)
	})
}

func (h *handling) ended(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.now, r)
	if len(h.now) == 0 && h.none != nil {
		close(h.none)
		h.none = nil
	}
}

// wait waits until none is left, or ctx is done.
func (h *handling) wait(ctx context.Context) {
	h.mu.Lock()
	if len(h.now) == 0 {
		h.mu.Unlock()
		return
	}
	if h.none == nil {
		h.none = make(chan struct{})
	}
	none := h.none
	h.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// maxListed is how many requests are named that do not end.
const maxListed = 10

// list names those that are left, as the log may show them.
func (h *handling) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var texts []string
	for r := range h.now {
		texts = append(texts, r.Method+" "+r.URL.EscapedPath())
	}
	slices.Sort(texts)
	if more := len(texts) - maxListed; more > 0 {
		texts = append(texts[:maxListed], fmt.Sprintf("%d more requests", more))
	}
	return texts
}
