package main

// Tools that are HTTP services of others: they are declared, not written.

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
)

// Reserve is a tool made of one URL. The service is in a private network, so it is listed.
func Reserve(base string) (holdfast.Tool, error) {
	return httptool.New(httptool.Options{
		Name:        "reserve",
		Description: "Reserves an item of the warehouse for a day.",
		Method:      "POST",
		URL:         base + "/items/{item}/reservations?note={note}",
		Headers:     map[string]string{"Authorization": "Bearer ${STOCK_TOKEN}"},
		Body:        json.RawMessage(`{"count": "{count}", "reference": "{call.key}"}`),
		Parameters: json.RawMessage(`{
			"type": "object",
			"required": ["item", "count"],
			"additionalProperties": false,
			"properties": {
				"item": {"type": "string", "description": "the item's number"},
				"count": {"type": "integer", "minimum": 1},
				"note": {"type": "string"}
			}
		}`),
		Effect: holdfast.EffectQuery,
		LookUp: base + "/reservations/{call.key}",
		Result: httptool.Result{Template: "Reserved {/count} until {/until}."},
		Allow:  []string{"127.0.0.1", "stock.internal:8443"},
	})
}

// StockTools are two operations of an OpenAPI document.
func StockTools(document []byte, base string) ([]holdfast.Tool, error) {
	operations, err := httptool.FromOpenAPI(document, httptool.OpenAPIOptions{
		Server:  base,
		Headers: map[string]string{"Authorization": "Bearer ${STOCK_TOKEN}"},
		Prefix:  "stock_",
		Operations: []httptool.Operation{
			{Operation: "getItem", Result: httptool.Result{Select: []string{"/count"}}},
			{Operation: "PUT /items/{item}/price", Effect: holdfast.EffectIdempotent},
		},
		Allow: []string{"127.0.0.1", "stock.internal:8443"},
	})
	tools := make([]holdfast.Tool, len(operations))
	for i, t := range operations {
		tools[i] = t
	}
	return tools, err
}
