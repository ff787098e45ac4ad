package middleware

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

func TestIterationLimit(t *testing.T) {
	t.Parallel()
	m := IterationLimit(3)
	if err := m.BeforeIteration(t.Context(), &holdfast.Iteration{Number: 12, Granted: 2}); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	err := m.BeforeIteration(t.Context(), &holdfast.Iteration{Number: 13, Granted: 3})
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Code != codes.MaxIterations || e.Hint == "" {
		t.Fatalf("got %v, want the code %s with a hint", err, codes.MaxIterations)
	}
	if !strings.Contains(e.Message, "13") || !strings.Contains(e.Message, "3 iterations") {
		t.Errorf("the message does not name the iteration and the limit: %s", e.Message)
	}
	if err := IterationLimit(0).BeforeIteration(t.Context(), &holdfast.Iteration{Granted: 1000}); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
