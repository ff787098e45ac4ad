package holdfast_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// A tool that calls a payment service, which uses the key to charge a card only once.
func ExampleKeyTransport() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "charged under %s", r.Header.Get("Idempotency-Key"))
	}))
	defer bank.Close()

	client := &http.Client{Transport: holdfast.KeyTransport{}}
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

	call := holdfast.ToolCall{Name: "charge", Key: "thread/run/call"}
	result, err := charge.Call(holdfast.ContextWithCall(context.Background(), call, nil), call)
	fmt.Println(result.Text, err)
	// Output: charged under thread/run/call <nil>
}

func TestKeyTransport(t *testing.T) {
	var got []string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Idempotency-Key"))
	}))
	defer service.Close()
	client := &http.Client{Transport: holdfast.KeyTransport{Base: http.DefaultTransport}}
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
