package modelhttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/model"
)

// TestAmended: what is sent instead of a refused request, and when.
func TestAmended(t *testing.T) {
	t.Parallel()
	const ok = "data: fine\n\n"
	for name, c := range map[string]struct {
		answers []string // what the provider says; a number is a status
		amend   bool
		want    string
	}{
		"taken":            {[]string{ok}, true, "asked first; heard fine; truncated"},
		"refused, amended": {[]string{"400", ok}, true, "asked first; asked second x,y; heard fine; truncated"},
		"refused for ever": {[]string{"400", "400", "400"}, true,
			"asked first; asked second x,y; asked third; invalid"},
		"refused twice": {[]string{"400", "400", ok}, true,
			"asked first; asked second x,y; asked third; heard fine; truncated"},
		"nothing to amend":     {[]string{"400"}, false, "asked first; invalid"},
		"refused after a word": {[]string{ok}, true, "asked first; heard fine; truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log []string
			client, err := New(Provider{}, model.Options{
				Model:   "m",
				BaseURL: "https://host",
				Headers: map[string]string{"beta": "x"},
				Getenv:  func(string) string { return "" },
				HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					body, err := io.ReadAll(r.Body)
					said := "asked " + string(body)
					if beta := r.Header.Get("beta"); beta != "x" {
						said += " " + beta
					}
					log = append(log, said)
					res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
					text := c.answers[0]
					if c.answers = c.answers[1:]; text == "400" {
						res.StatusCode, text = http.StatusBadRequest, `{"error":{"message":"bound"}}`
					}
					res.Body = io.NopCloser(strings.NewReader(text))
					return res, err
				})},
			})
			if err != nil {
				t.Fatal(err)
			}
			client.StreamAmended(t.Context(), "/", text("first"), func(d holdfast.Delta, err error) bool {
				var e *holdfast.ModelError
				switch {
				case errors.Is(err, holdfast.ErrTruncated):
					log = append(log, "truncated")
				case errors.As(err, &e):
					log = append(log, string(e.Kind))
				default:
					log = append(log, "heard "+d.Text)
				}
				return true
			}, parseLines, func(e *holdfast.ModelError) (*Client, *Body) {
				switch {
				case !c.amend || e.Kind != failure.Invalid || len(log) > 2:
					return nil, nil
				case len(log) == 2:
					return client, text("third")
				}
				return client.With("beta", "y"), text("second")
			})
			if got := strings.Join(log, "; "); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
			if client.Header().Get("beta") != "x" {
				t.Error("the client itself is another")
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// text is a body that is only a text.
func text(s string) *Body {
	b := &Body{}
	b.buf.WriteString(s)
	return b
}
