package connections

import (
	"net"
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEndsWhileTheClientLeaves: a response that ends in the same moment closes its connection
// once, and nothing stays.
func TestEndsWhileTheClientLeaves(t *testing.T) {
	for range 200 {
		client, conn := net.Pipe()
		closed := 0
		d := NewDetached(0, func(_ net.Conn, is http.ConnState) {
			if is == http.StateClosed {
				closed++
			}
		}, func(net.Conn, []byte) { t.Error("the connection is given back") })
		c := &DetachedConn{of: d, conn: conn, reuse: true, left: func() {}}
		d.enter()
		d.open[c] = true
		d.wg.Go(c.watch)
		left := make(chan error)
		go func() { left <- client.Close() }()
		c.End(false)
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		if err := d.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if closed != 1 || len(d.open) != 0 {
			t.Fatalf("closed %d times, %d are open", closed, len(d.open))
		}
	}
}
