package main

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/contract"
)

// outsider hands its calls out to the journal, as "delivered", and waits for their results.
func (w *worker) outsider() holdfast.Agent {
	contract := contract.New[toolArgs]("outside", "A contract of the tests.", holdfast.Outside{
		ExpiresAfter: time.Hour,
		Deliver: func(_ context.Context, call holdfast.OutsideCall) error {
			w.at(call.Call.Thread, "deliver", call.Call.Iteration)
			w.note("delivered thread=%s call=%s key=%s url=%s", call.Call.Thread, call.Call.ID, call.Call.Key, call.URL.Reveal())
			w.at(call.Call.Thread, "delivered", call.Call.Iteration)
			return nil
		},
	})
	a := w.agent("outsider")
	a.Tools = append(a.Tools, contract)
	return a
}
