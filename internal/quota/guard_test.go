package quota

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestGuard: readers share the guard, a writer has it alone and before readers that come after it,
// and one that waits stops with its context.
func TestGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g guard
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			if g.read(ctx) != nil {
				t.Fatal("readers do not share it")
			}
		}
		var order []string
		wait := func(name string, take func(context.Context) error) {
			go func() {
				if err := take(context.Background()); err != nil {
					t.Error(err)
				}
				order = append(order, name)
				g.free()
			}()
			synctest.Wait()
		}
		given := make(chan error, 1)
		go func() { given <- g.write(ctx) }()
		synctest.Wait()
		wait("reader", g.read)
		if len(order) > 0 {
			t.Error("a reader passes a writer that waits")
		}
		cancel()
		synctest.Wait()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("a writer goes on waiting: %v", err)
		}
		if len(order) != 1 {
			t.Error("a reader waits for a writer that has left")
		}
		wait("writer", g.write)
		g.free()
		if synctest.Wait(); len(order) != 1 {
			t.Error("a writer does not wait for the last reader")
		}
		g.free()
		if synctest.Wait(); len(order) != 2 {
			t.Error("nobody has it, and a writer waits")
		}
		if err := g.read(ctx); err != nil {
			t.Errorf("a free guard cannot be taken: %v", err)
		}
	})
}

// TestGuardTurns: a writer that gives the guard back and comes again at once does not pass a reader
// that waits, whichever of the two is faster.
func TestGuardTurns(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var g guard
			if g.write(t.Context()) != nil {
				t.Fatal("a free guard cannot be taken")
			}
			var order []string
			go func() {
				if g.read(t.Context()) == nil {
					order = append(order, "reader")
					g.free()
				}
			}()
			synctest.Wait()
			g.free()
			if g.write(t.Context()) == nil {
				order = append(order, "writer")
				g.free()
			}
			if len(order) != 2 || order[0] != "reader" {
				t.Fatalf("it was given to %q", order)
			}
		})
	}
}
