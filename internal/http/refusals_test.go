package http

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusalsAreSpread: a few refusals wait for nothing, and those of a crowd come evenly over the
// next two seconds. A client that goes does not wait, and later a refusal is a single one again.
func TestRefusalsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 4000
		waiting, closed := 0, make(chan struct{})
		var log bytes.Buffer
		all := &refusals{
			waits: func(*http.Request) <-chan struct{} { waiting++; return closed },
			log:   slog.New(slog.NewTextHandler(&log, nil)),
		}
		waits := func(ctx context.Context) time.Duration {
			began := time.Now()
			all.wait(httptest.NewRequest(http.MethodPost, "/runs", http.NoBody).WithContext(ctx))
			return time.Since(began)
		}
		for n := range refusedAtOnce {
			if d := waits(t.Context()); d != 0 {
				t.Fatalf("refusal %d waited %s", n, d)
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if d := waits(gone); d != 0 || waiting != 1 {
			t.Errorf("a client that has gone waited %s, %d have waited", d, waiting)
		}
		close(closed)
		if d := waits(t.Context()); d != 0 || waiting != 2 {
			t.Errorf("a connection that is closed waited %s, %d have waited", d, waiting)
		}
		if n := strings.Count(log.String(), "look for a client whose key has expired"); n != 1 {
			t.Errorf("the log tells of the crowd %d times, want once: %s", n, log.String())
		}
		var each []time.Duration
		for range crowd {
			each = append(each, all.next())
		}
		slices.Sort(each)
		for n, d := range each {
			if even := spell * time.Duration(n) / crowd; (d - even).Abs() > spell/100 {
				t.Fatalf("the refusal number %d comes after %s, want about %s", n, d, even)
			}
		}
		time.Sleep(spell)
		if d := waits(t.Context()); d != 0 {
			t.Errorf("a single one waited %s", d)
		}
	})
}
