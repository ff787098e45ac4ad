package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/idempotency"
)

// A tool that calls a payment service, which uses the key to charge a card only once.
func ExampleTransport() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "charged under %s", r.Header.Get("Idempotency-Key"))
	}))
	defer bank.Close()

	client := &http.Client{Transport: idempotency.Transport{}}
	charge := holdfast.NewTool("charge", "Charges the card.", func(ctx context.Context, _ struct{}) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.URL, nil)
		if err != nil {
			return "", err
		}
		res, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text := make([]byte, 100)
		n, _ := res.Body.Read(text)
		return string(text[:n]), nil
	})

	call := holdfast.ToolCall{Name: "charge", Key: "a7w2"}
	result, err := charge.Call(holdfast.ContextWithCall(context.Background(), call, nil), call)
	fmt.Println(result.Text, err)
	// Output: charged under a7w2 <nil>
}

func TestTransport(t *testing.T) {
	var got []string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Idempotency-Key"))
	}))
	defer service.Close()
	client := &http.Client{Transport: idempotency.Transport{Base: http.DefaultTransport}}
	send := func(key, own string) {
		ctx := t.Context()
		if key != "" {
			ctx = holdfast.ContextWithCall(ctx, holdfast.ToolCall{Key: key}, nil)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if own != "" {
			req.Header.Set("Idempotency-Key", own)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if own == "" && req.Header.Get("Idempotency-Key") != "" {
			t.Error("the caller's request was changed")
		}
	}
	send("t/r/c", "")
	send("Grüße an alle\n/r/c", "")
	send("t/r/c", "mine")
	send("", "")
	want := []string{"t/r/c", "Gr%C3%BC%C3%9Fe%20an%20alle%0A/r/c", "mine", ""}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the service got %q, want %q", got, want)
	}
}

// TestTransportSendsOnce: a service that takes a POST and dies before it answers has
// maybe done the work. net/http would send a request with this header again by itself,
// if the connection had been used before.
func TestTransportSendsOnce(t *testing.T) {
	for name, body := range map[string]func() io.Reader{
		"a body":            func() io.Reader { return strings.NewReader(`{"amount":1}`) },
		"no body":           func() io.Reader { return nil },
		"an empty body":     func() io.Reader { return http.NoBody },
		"a body of a pipe":  func() io.Reader { return io.MultiReader(strings.NewReader("{}")) },
		"a header of yours": func() io.Reader { return strings.NewReader("mine") },
	} {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int64
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				want := "key"
				if string(content) == "mine" {
					want = "key-1"
				}
				if got := r.Header.Values("Idempotency-Key"); len(got) != 1 || got[0] != want {
					t.Errorf("the service got the keys %q", got)
				}
				if posts.Add(1) > 1 {
					panic(http.ErrAbortHandler) // the connection is cut
				}
			}))
			defer service.Close()
			client := &http.Client{Transport: idempotency.Transport{Base: &http.Transport{}}}
			ctx := holdfast.ContextWithCall(t.Context(), holdfast.ToolCall{Key: "key"}, nil)
			post := func() error {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL, body())
				if err != nil {
					t.Fatal(err)
				}
				if name == "a header of yours" {
					req.Header.Set("Idempotency-Key", "key-1")
				}
				res, err := client.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				return err
			}
			if err := post(); err != nil {
				t.Fatal(err)
			}
			if err := post(); err == nil {
				t.Error("the second POST has succeeded")
			}
			if n := posts.Load(); n != 2 {
				t.Errorf("two requests arrived %d times", n)
			}
		})
	}
}
