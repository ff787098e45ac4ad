package middleware_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/middleware"
)

// TestInvalidOptions of a program are a panic that names the function.
func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "middleware.CircuitBreaker: maxIdenticalCalls") {
			t.Errorf("the panic says %s", text)
		}
	}()
	middleware.CircuitBreaker(middleware.CircuitBreakerOptions{MaxIdenticalCalls: -1})
}
