// Package tools has the tools of the demo agent. They need no key and no network.
package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	_ "time/tzdata" // time zones, for systems without any

	"github.com/holdfast-agents/holdfast"
)

// Builtin returns the demo agent's tools. With a pace, each call takes a few times that
// long, and each tool a different number of times. With a journal, charge_card is one of
// the tools, and every call writes lines to the journal; see [Journal].
func Builtin(clock func() time.Time, pace time.Duration, journal io.Writer) []holdfast.Tool {
	tools := []holdfast.Tool{
		CurrentTime(clock),
		Calculate(),
		Wait(),
		Lookup(),
		AskPerson(),
		UpdatePlan(),
		RequestApproval(),
	}
	if journal != nil {
		tools = append(tools, Charge(journal))
	}
	tools = append(tools, CarryOut())
	for i, t := range tools {
		if pace > 0 {
			t = &paced{Tool: t, pause: time.Duration(2+i) * pace}
		}
		if journal != nil {
			t = Journal(t, journal)
		}
		tools[i] = t
	}
	return tools
}

type currentTimeArgs struct {
	Timezone string `json:"timezone,omitempty" jsonschema:"an IANA name like Europe/Berlin; UTC when it is left out"`
}

type currentTime struct {
	Time     string `json:"time"`
	Weekday  string `json:"weekday"`
	Timezone string `json:"timezone"`
}

// CurrentTime is the tool current_time.
func CurrentTime(clock func() time.Time) holdfast.Tool {
	tell := func(_ context.Context, args currentTimeArgs) (currentTime, error) {
		zone, err := time.LoadLocation(args.Timezone)
		if err != nil {
			return currentTime{}, fmt.Errorf("there is no time zone %q: use an IANA name like Europe/Berlin",
				args.Timezone)
		}
		now := clock().In(zone)
		return currentTime{now.Format(time.RFC3339), now.Weekday().String(), zone.String()}, nil
	}
	return holdfast.NewTool("current_time", "Tells the date, the time and the weekday.", tell,
		holdfast.WithEffect(holdfast.EffectPure))
}

type waitArgs struct {
	Seconds float64 `json:"seconds" jsonschema:"how long to wait, from 0 to 60"`
}

// maxWait is the longest wait; the tool's timeout is a little longer.
const maxWait = time.Minute

// Wait is the tool wait. It ends early when its run is cancelled.
func Wait() holdfast.Tool {
	wait := func(ctx context.Context, args waitArgs) (string, error) {
		if args.Seconds < 0 || args.Seconds > maxWait.Seconds() {
			return "", fmt.Errorf("seconds must be between 0 and %v, not %v", maxWait.Seconds(), args.Seconds)
		}
		t := time.NewTimer(time.Duration(args.Seconds * float64(time.Second)))
		defer t.Stop()
		select {
		case <-t.C:
			return fmt.Sprintf("Waited %v seconds.", args.Seconds), nil
		case <-ctx.Done():
			return "", fmt.Errorf("the wait was cut short: %w", context.Cause(ctx))
		}
	}
	return holdfast.NewTool("wait", "Waits for some seconds.", wait, holdfast.WithEffect(holdfast.EffectPure),
		holdfast.WithTimeout(maxWait+10*time.Second))
}

type chargeArgs struct {
	Amount   float64 `json:"amount" jsonschema:"more than 0"`
	Currency string  `json:"currency" jsonschema:"three letters, like EUR"`
}

// Charge is the tool charge_card, which stands for everything that must not happen
// twice. It appends one line per charge to w, so that charges can be counted.
//
//	charge key=KEY amount=12.50 currency=EUR
func Charge(w io.Writer) holdfast.Tool {
	charge := func(ctx context.Context, args chargeArgs) (string, error) {
		currency := strings.ToUpper(args.Currency)
		switch {
		case args.Amount <= 0:
			return "", fmt.Errorf("amount must be more than 0, not %v; nothing was charged", args.Amount)
		case len(currency) != 3 || strings.Trim(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
			return "", fmt.Errorf("currency must be three letters, not %q; nothing was charged", args.Currency)
		}
		key := holdfast.CallFrom(ctx).Key
		if _, err := fmt.Fprintf(w, "charge key=%s amount=%.2f currency=%s\n", field(key), args.Amount,
			currency); err != nil {
			return "", errors.New("the charge could not be written down; it is not certain that it was made")
		}
		return fmt.Sprintf("Charged %.2f %s.", args.Amount, currency), nil
	}
	return holdfast.NewTool("charge_card", "Charges the demo card. No real money moves.", charge,
		holdfast.WithEffect(holdfast.EffectOnce))
}
