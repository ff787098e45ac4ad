package holdfast_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
)

func TestErrorHelpersReturnCopies(t *testing.T) {
	cause := errors.New("disk full")
	base := holdfast.Errorf(codes.NotFound, "There is no thread %q.", "t1")
	full := base.WithHint("Look at %s.", "/threads").With("thread", "t1").With("run", "r1").Wrap(cause)

	if base.Hint != "" || base.Details != nil || base.Err != nil {
		t.Errorf("the first error was changed: %+v", base)
	}
	one := base.With("a", 1)
	if one.With("b", 2); len(one.Details) != 1 {
		t.Errorf("the details are shared: %v", one.Details)
	}
	if full.Code != codes.NotFound || full.Message != `There is no thread "t1".` || full.Hint != "Look at /threads." ||
		full.Details["thread"] != "t1" || full.Details["run"] != "r1" || !errors.Is(full, cause) {
		t.Errorf("got %+v", full)
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("disk full")
	tests := []struct {
		give *holdfast.Error
		want string
	}{
		{&holdfast.Error{Code: "code"}, "code"},
		{holdfast.Errorf("code", "message"), "code: message"},
		{holdfast.Errorf("code", "message").Wrap(cause), "code: message: disk full"},
		{(&holdfast.Error{Code: "code"}).Wrap(cause), "code: disk full"},
	}
	for _, tt := range tests {
		if got := tt.give.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestAsError(t *testing.T) {
	if got := holdfast.AsError(nil); got != nil {
		t.Errorf("nil: got %v", got)
	}
	want := holdfast.Errorf(codes.Interrupted, "waiting")
	if got := holdfast.AsError(fmt.Errorf("decide: %w", want)); got != want {
		t.Errorf("wrapped: got %v", got)
	}
	secret := errors.New("password=hunter2")
	got := holdfast.AsError(secret)
	if got.Code != codes.Internal || !errors.Is(got, secret) {
		t.Errorf("got %+v", got)
	}
	if shown := got.Message + got.Hint; strings.Contains(shown, "hunter2") || got.Message == "" || got.Hint == "" {
		t.Errorf("the caller is shown %q", shown)
	}
}

func TestModelError(t *testing.T) {
	cause := errors.New("503")
	for _, tt := range []struct {
		give *holdfast.ModelError
		want string
	}{
		{&holdfast.ModelError{Public: "Busy."}, "model call failed: Busy."},
		{&holdfast.ModelError{Public: "Busy.", Err: cause}, "model call failed: 503"},
		{&holdfast.ModelError{Kind: failure.Rate, Provider: "acme", Model: "large", RequestID: "r1", Status: 429,
			Err: cause},
			"model call failed (kind rate, provider acme, model large, request r1, status 429): 503"},
	} {
		if tt.give.Error() != tt.want || errors.Unwrap(tt.give) != tt.give.Err {
			t.Errorf("got %q", tt.give.Error())
		}
	}
}
