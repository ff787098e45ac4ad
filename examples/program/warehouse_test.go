package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/idempotency"
)

// TestCheckStock: the warehouse gets the token of the environment.
func TestCheckStock(t *testing.T) {
	t.Setenv("WAREHOUSE_TOKEN", "w-1")
	warehouse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Path + " " + r.Header.Get("Authorization")))
	}))
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); warehouse.Close() })
	tool := CheckStock(warehouse.URL, credential.Env("WAREHOUSE_TOKEN"))
	got, err := tool.Call(t.Context(), holdfast.ToolCall{Arguments: json.RawMessage(`{"item":"rope","cents":1}`)})
	if err != nil || got.Text != "/stock/rope Bearer w-1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRestock: the warehouse gets the call's key.
func TestRestock(t *testing.T) {
	var key string
	warehouse := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key = r.Header.Get(idempotency.Header)
	}))
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); warehouse.Close() })
	call := holdfast.ToolCall{Key: "k1", Arguments: json.RawMessage(`{"item": "chair", "cents": 1}`)}
	r, err := Restock(warehouse.URL).Call(holdfast.ContextWithCall(t.Context(), call, nil), call)
	if err != nil || r.Text != "More is on its way." || key != "k1" {
		t.Errorf("got %+v, %v, with the key %q", r, err, key)
	}
}
