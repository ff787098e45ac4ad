package modeltest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// Reader reads streams without a request.
type Reader struct {
	Client *modelhttp.Client
	Parser func(*modelhttp.Answer) modelhttp.Parser
	// Ends are texts of which a stream that ends well has one, in lower case.
	Ends []string
}

// Read writes down what a stream says.
func (r *Reader) Read(t testing.TB, stream io.Reader) string {
	t.Helper()
	var log strings.Builder
	finished := false
	err := r.Client.Read(stream, func(d holdfast.Delta, _ error) bool {
		if finished {
			t.Error("a delta came after the last one")
		}
		finished = d.Finish != ""
		call := ""
		if d.Call != nil {
			c := d.Call
			call = fmt.Sprintf("{%d %s %s %s %s}", c.Index, c.ID, c.Name, c.Arguments, c.EncryptedValue)
		}
		fmt.Fprintf(&log, "%q %q %q %s %s\n", d.Text, d.Reasoning, d.ReasoningSecret, call, d.Finish)
		return true
	}, r.Parser)
	if (err == nil) != finished {
		t.Errorf("finished %v with the error %v", finished, err)
	}
	fmt.Fprint(&log, err)
	return log.String()
}

// Fuzz fuzzes a reader, from the provider's answers and misbehaviours and further streams.
// No stream makes it panic, end twice, end well without its end, or say much more than the
// stream does; and it makes no difference where the network splits the stream.
func Fuzz(f *testing.F, p Provider, r *Reader, more ...string) {
	f.Helper()
	s := &suite{p}
	for _, name := range slices.Sorted(maps.Keys(s.samples())) {
		a := s.samples()[name]
		a.Signature = "sig"
		f.Add([]byte(strings.Join(s.Stream(a), "")))
	}
	half := strings.Join(s.Stream(s.samples()["a call"])[:2], "")
	for _, list := range [][]string{{s.Undecodable}, s.Unknown,
		slices.Concat(slices.Collect(maps.Values(s.Errors))...),
		slices.Concat(slices.Collect(maps.Values(s.Endings))...), more} {
		slices.Sort(list) // the numbers of the corpus stay the same
		for _, event := range list {
			f.Add([]byte(half + event))
		}
	}
	for _, refusal := range s.Refusals {
		f.Add([]byte(refusal.Body))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, pieces := r.Read(t, bytes.NewReader(stream)), r.Read(t, iotest.OneByteReader(bytes.NewReader(stream)))
		if whole != pieces {
			t.Errorf("in one piece:\n%s\nbyte by byte:\n%s", whole, pieces)
		}
		if len(whole) > 64*len(stream)+1<<12 {
			t.Errorf("%d bytes say %d", len(stream), len(whole))
		}
		said := strings.ToLower(string(stream))
		ends := slices.ContainsFunc(r.Ends, func(end string) bool { return strings.Contains(said, end) })
		if strings.HasSuffix(whole, "\n<nil>") && !ends && !strings.Contains(said, `\u`) {
			t.Errorf("it ended well:\n%s", whole)
		}
	})
}
