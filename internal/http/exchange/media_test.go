package exchange

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// A photo makes a body large that is small otherwise; words do not get its room.
func TestMediaHasMoreRoom(t *testing.T) {
	const most, mostMedia = 32 << 10, 64 << 10
	photo := func(n int) string { return strings.Repeat("aB3+/-_=", n/8) }
	words := func(n int) string { return strings.Repeat("a word, ", n/8) }
	in := NewReceiver(Bodies{
		Most: most, MostMedia: mostMedia, All: 1 << 20, Timeout: time.Minute,
		Awaiting: func(*http.Request, bool) {}, Unread: func(*http.Request) {},
	})
	for name, c := range map[string]struct {
		body string
		want int64 // the limit that the error names; 0 if there is none
	}{
		"words":                          {words(most), 0},
		"more words":                     {words(most) + "a", most},
		"a photo":                        {photo(mostMedia), 0},
		"a larger photo":                 {photo(mostMedia) + "a", mostMedia},
		"slashes that are escaped":       {strings.Repeat(`\/`, mostMedia/2), 0},
		"two photos and words":           {photo(20<<10) + words(20<<10) + photo(20<<10), 0},
		"words before a photo":           {words(30<<10) + photo(32<<10), 0},
		"a photo that is half of it":     {words(24<<10) + photo(24<<10), most},
		"many short runs, as of ids":     {strings.Repeat(photo(shortestMedia-8)+`","`, 10), most},
		"words that go on after a photo": {photo(30<<10) + words(33<<10), most},
	} {
		for _, pieces := range []func(io.Reader) io.Reader{nil, iotest.OneByteReader, iotest.HalfReader} {
			from := io.Reader(strings.NewReader(c.body))
			if pieces != nil {
				from = pieces(from)
			}
			var got []byte
			var err error
			h := (&Monitor{Observer: NoObserver{}, Log: slog.New(slog.DiscardHandler),
				Bodies: in}).Observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, err = in.Read(w, r)
			}))
			request := httptest.NewRequest(http.MethodPost, "/", from)
			request.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(httptest.NewRecorder(), request)
			limit := int64(0)
			if coded := (*holdfast.Error)(nil); errors.As(err, &coded) {
				limit, _ = coded.Details["limit"].(int64)
			}
			if limit != c.want || c.want == 0 && string(got) != c.body {
				t.Errorf("%s: the limit is %d (%v), want %d", name, limit, err, c.want)
			}
		}
	}
}
