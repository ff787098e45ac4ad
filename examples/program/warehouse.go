package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/idempotency"
)

// CheckStock asks the warehouse, which knows this shop by a token.
func CheckStock(warehouse string, token credential.Source) holdfast.Tool {
	client := &http.Client{Transport: &credential.Transport{Source: token, Server: warehouse, Name: "warehouse"}}
	return holdfast.NewTool(
		"check_stock",
		"Says how many there are.",
		func(ctx context.Context, o Order) (string, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, warehouse+"/stock/"+url.PathEscape(o.Item), nil)
			if err != nil {
				return "", err
			}
			res, err := client.Do(r)
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			b, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
			return string(b), err
		},
		holdfast.WithEffect(holdfast.EffectPure),
	)
}

// Restock has more of an item brought. The warehouse gets the call's key with the request, so
// that it does the work once, however often the request comes.
func Restock(warehouse string) holdfast.Tool {
	client := &http.Client{Transport: idempotency.Transport{}}
	return holdfast.NewTool("restock", "Has more of an item brought.",
		func(ctx context.Context, o Order) (string, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, warehouse+"/restock/"+url.PathEscape(o.Item),
				nil)
			if err != nil {
				return "", err
			}
			res, err := client.Do(r)
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return "", fmt.Errorf("the warehouse answered %s", res.Status)
			}
			return "More is on its way.", nil
		})
}
