package connection

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// reply is an error that Redis answers with.
type reply string

func (r reply) Error() string { return string(r) }

// RedisError implements [redis.Error].
func (reply) RedisError() {}

var _ redis.Error = reply("")

// TestReach: Redis is waited for until it is ready, or until the patience is over, and the log
// says so once. A failure that waiting does not change is said at once.
func TestReach(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	loading := reply("LOADING Redis is loading the dataset in memory")
	for name, c := range map[string]struct {
		err      error         // until Redis is ready
		ready    time.Duration // when it is
		patience time.Duration
		want     string // in the error; none if it is empty
		took     time.Duration
	}{
		"ready": {patience: 10 * time.Second},
		"refused for a while": {err: refused, ready: 4 * time.Second, patience: 10 * time.Second,
			took: 5 * time.Second},
		"loading for a while": {err: loading, ready: 9 * time.Second, patience: 10 * time.Second,
			took: 10 * time.Second},
		"accepted and closed": {err: io.EOF, ready: 4 * time.Second, patience: 10 * time.Second,
			took: 5 * time.Second},
		"a master without slots": {err: reply("CLUSTERDOWN The cluster is down"), ready: time.Second,
			patience: 10 * time.Second, took: 2 * time.Second},
		"refused for too long": {err: refused, ready: time.Hour, patience: 10 * time.Second,
			want: "connection refused; is it running, and is the address right?", took: 10 * time.Second},
		"closed for too long": {err: io.EOF, ready: time.Hour, patience: 10 * time.Second,
			want: "EOF; is it running", took: 10 * time.Second},
		"loading for too long": {err: loading, ready: time.Hour, patience: 10 * time.Second,
			want: "it has been loading for 10s", took: 10 * time.Second},
		"no patience": {err: refused, ready: time.Hour, want: "is it running"},
		"a wrong password": {err: reply("WRONGPASS invalid username-password pair"), ready: time.Hour,
			patience: 10 * time.Second, want: "password right?"},
		"three sentinels": {err: fmt.Errorf("no sentinel answers: %w", errors.Join(refused, refused, io.EOF)),
			ready: time.Hour, patience: 10 * time.Second,
			want: "no sentinel answers: dial: connection refused; EOF; is it", took: 10 * time.Second},
		"somebody else's address": {err: &tls.CertificateVerificationError{Err: errors.New("not for you")},
			ready: time.Hour, patience: 10 * time.Second, want: "not for you"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				begun := time.Now()
				err := Reach(t.Context(), func(context.Context) error {
					if time.Since(begun) < c.ready {
						return c.err
					}
					return nil
				}, c.patience, slog.New(slog.NewTextHandler(&log, nil)))
				if (err != nil) != (c.want != "") ||
					err != nil && (!strings.HasPrefix(err.Error(), "cannot reach Redis: ") ||
						!strings.Contains(err.Error(), c.want)) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if took := time.Since(begun); took > c.took || took < min(c.ready, c.took) {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				waits, answers := strings.Count(log.String(), `level=WARN msg="waiting for Redis" for=10s`),
					strings.Count(log.String(), `msg="Redis answers"`)
				waited := c.took > 0
				if (waits == 1) != waited || (answers == 1) != (waited && err == nil) {
					t.Errorf("the log says %q", log.String())
				}
			})
		})
	}
}

// TestReachNotices: an address that swallows everything is noticed before the patience is
// over.
func TestReachNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := wait.NewLines("waiting")
		go func() {
			_ = Reach(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 10*time.Second,
				said.Logger())
		}()
		begun := time.Now()
		<-said.Found
		if took := time.Since(begun); took != attempt {
			t.Errorf("the log says so after %s", took)
		}
		time.Sleep(10 * time.Second)
	})
}
