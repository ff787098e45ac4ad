package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

const stockDocument = `
openapi: 3.1.0
paths:
  /items/{item}:
    get:
      operationId: getItem
      parameters: [{name: item, in: path, required: true, schema: {type: string}}]
  /items/{item}/price:
    put:
      parameters: [{name: item, in: path, required: true, schema: {type: string}}]
      requestBody: {required: true, content: {application/json: {schema: {type: integer}}}}
`

// TestStock calls the tools as the server does.
func TestStock(t *testing.T) {
	t.Setenv("STOCK_TOKEN", "t0ken-of-the-shop")
	var seen []string
	stock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer t0ken-of-the-shop" {
			t.Errorf("%v, %v", err, r.Header)
		}
		seen = append(seen, fmt.Sprintf("%s %s %s key=%s", r.Method, r.RequestURI, body,
			r.Header.Get("Idempotency-Key")))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"count": 2, "until": "tomorrow"}`)
	}))
	defer stock.Close()
	reserve, err := Reserve(stock.URL)
	if err != nil {
		t.Fatal(err)
	}
	others, err := StockTools([]byte(stockDocument), stock.URL)
	if err != nil {
		t.Fatal(err)
	}
	call := func(tool holdfast.Tool, arguments, want string) {
		t.Helper()
		c := holdfast.ToolCall{Name: tool.Spec().Name, Key: "key7", Arguments: json.RawMessage(arguments)}
		if result, err := tool.Call(holdfast.ContextWithCall(t.Context(), c, nil), c); err != nil ||
			result.Text != want {
			t.Errorf("%s: %+v, %v", c.Name, result, err)
		}
	}
	call(reserve, `{"item":"a7","count":2}`, "Reserved 2 until tomorrow.")
	call(others[0], `{"item":"a7"}`, "2")
	call(others[1], `{"item":"a7","body":199}`, `{"count": 2, "until": "tomorrow"}`)
	c := holdfast.ToolCall{Key: "key7", Arguments: json.RawMessage(`{"item":"a7","count":2}`)}
	if result, fate, err := reserve.Spec().
		Query(t.Context(), c); fate != holdfast.FateDone || result.Text != "Reserved 2 until tomorrow." {
		t.Errorf("%+v, %s, %v", result, fate, err)
	}
	want := []string{
		`POST /items/a7/reservations {"count":2,"reference":"key7"} key=key7`,
		`GET /items/a7  key=`,
		`PUT /items/a7/price 199 key=key7`,
		`GET /reservations/key7  key=`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
	if others[0].Spec().Name != "stock_getItem" || others[1].Spec().Name != "stock_PUT_items_item_price" {
		t.Error(others[0].Spec().Name, others[1].Spec().Name)
	}
}
