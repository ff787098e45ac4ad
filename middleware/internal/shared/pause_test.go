package shared_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := shared.Pause(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		begun = time.Now()
		if err := shared.Pause(ctx, time.Minute); !errors.Is(err, reason) || time.Since(begun) != time.Second {
			t.Errorf("cancelled: %v after %s", err, time.Since(begun))
		}
	})
}
