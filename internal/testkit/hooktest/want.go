package hooktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// Code returns the code of an error that ends a run; empty if it is none.
func Code(err error) string {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// WantCode checks that an error ends the run with the code and a hint, and that the
// parts are in its text.
func WantCode(t *testing.T, err error, code string, parts ...string) {
	t.Helper()
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Code != code || e.Hint == "" {
		t.Fatalf("got %v, want the code %s with a hint", err, code)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message+" "+e.Hint, part) {
			t.Errorf("%q is not in: %s %s", part, e.Message, e.Hint)
		}
	}
}

// WantQuestion returns the question that a hook asks.
func WantQuestion(t *testing.T, err error) *holdfast.Interrupt {
	t.Helper()
	var ask *holdfast.Interrupt
	if !errors.As(err, &ask) {
		t.Fatalf("got %v, want a question", err)
	}
	return ask
}

// WantInvalid checks options that cannot be used, each under a part of what Validate
// says about them. The function panics with its name and that text.
func WantInvalid[O interface{ Validate() error }](
	t *testing.T, function string, f func(O) holdfast.Middleware, invalid map[string]O,
) {
	t.Helper()
	for want, o := range invalid {
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
			continue
		}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != function+": "+err.Error() {
					t.Errorf("the panic is %q, want %s: %v", got, function, err)
				}
			}()
			f(o)
		}()
	}
}
