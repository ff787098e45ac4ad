package turns_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/turns"
)

// asked are requests that wait, and in which order they had their turns.
type asked struct {
	*turns.Turns
	had chan string
	end chan struct{} // ends a turn
}

// ask lets requests of users ("tenant/user") wait, one after the other.
func (a *asked) ask(t *testing.T, users string) {
	for name := range strings.FieldsSeq(users) {
		tenant, user, _ := strings.Cut(name, "/")
		go func() {
			end, err := a.Take(t.Context(), holdfast.Principal{Tenant: tenant, User: user})
			if err != nil {
				t.Error(err)
				return
			}
			a.had <- name
			<-a.end
			end()
		}()
		synctest.Wait()
	}
}

// order ends turns one after the other until nobody waits, and returns who has had one.
func (a *asked) order() string {
	var names []string
	for {
		synctest.Wait()
		select {
		case name := <-a.had:
			names = append(names, name)
			continue
		default:
		}
		select {
		case a.end <- struct{}{}:
		default:
			return strings.Join(names, " ")
		}
	}
}

// TestOrder: tenants have turns one after the other, and so have the users of each.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		places, perUser int
		asks, order     string
	}{
		"tenants":           {1, 1, "a/x a/x a/x a/x b/y b/y c/z", "a/x a/x b/y c/z a/x b/y a/x"},
		"users":             {1, 1, "a/x a/x a/x a/x a/y a/y a/z", "a/x a/x a/y a/z a/x a/y a/x"},
		"both":              {1, 1, "a/x a/x a/x a/y b/z b/z b/z", "a/x a/x b/z a/y b/z a/x b/z"},
		"one of a user":     {3, 1, "a/x a/x a/x b/y b/y", "a/x b/y a/x b/y a/x"},
		"several":           {3, 3, "a/x a/x a/x b/y b/y", "a/x a/x b/y a/x b/y"},
		"one is for others": {4, 4, "a/x a/x a/y a/z a/x b/y", "a/x a/x a/y b/y a/z a/x"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &asked{turns.New(c.places, c.perUser), make(chan string, 100), make(chan struct{})}
				a.ask(t, c.asks)
				if got := a.order(); got != c.order {
					t.Errorf("the order is %s\nwant         %s", got, c.order)
				}
			})
		})
	}
}

// TestWithdraw: a request whose client has gone keeps nobody waiting.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{turns.New(1, 1), make(chan string, 100), make(chan struct{})}
		a.ask(t, "a/x")
		gone, leave := context.WithCancelCause(t.Context())
		errs := make(chan error, 6)
		for i := range 6 {
			go func() {
				_, err := a.Take(gone, holdfast.Principal{Tenant: fmt.Sprint("t", i%2), User: fmt.Sprint("u", i%3)})
				errs <- err
			}()
		}
		synctest.Wait()
		a.ask(t, "b/y a/z")
		leave(io.ErrClosedPipe)
		for range 6 {
			if err := <-errs; !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		}
		if got := a.order(); got != "a/x b/y a/z" {
			t.Errorf("the order is %s", got)
		}
		a.ask(t, "t0/u0 t1/u1")
		if got := a.order(); got != "t0/u0 t1/u1" {
			t.Errorf("then it is %s", got)
		}
	})
}

// TestTheNextInLineGoesWithoutAPlace: a holder that keeps its place long keeps the others
// waiting only for the next one's patience, one after the other, and a place that was never
// taken is not given back.
func TestTheNextInLineGoesWithoutAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns.NewPatient(1, 1, 1, time.Second)
		take := func(tenant string) (end func()) {
			end, err := all.Take(t.Context(), holdfast.Principal{Tenant: tenant})
			if err != nil {
				t.Error(err)
			}
			return end
		}
		held := take("a")
		began := time.Now()
		went := make(chan string, 4)
		for _, tenant := range []string{"a", "a", "b"} {
			go func() {
				end := take(tenant)
				went <- fmt.Sprint(tenant, " ", time.Since(began))
				time.Sleep(time.Hour)
				end()
			}()
			synctest.Wait()
		}
		for _, want := range []string{"a 1s", "b 2s", "a 3s"} {
			if got := <-went; got != want {
				t.Errorf("went in: %s, want %s", got, want)
			}
		}
		held() // the one place is free again only when all others have left
		go func() {
			defer take("c")()
			went <- fmt.Sprint("c ", time.Since(began))
		}()
		if got := <-went; got != "c 4s" {
			t.Errorf("went in: %s, want c 4s", got)
		}
		time.Sleep(2 * time.Hour)
		take("d")()
		if waited := time.Since(began) - 2*time.Hour - 4*time.Second; waited != 0 {
			t.Errorf("the place was not free: waited %s", waited)
		}
	})
}

// TestPatienceEndsOnce: if a place becomes free at the moment at which the patience ends, the next
// ones wait for no less than that.
func TestPatienceEndsOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			all := turns.NewPatient(1, 1, 1, time.Second)
			ctx, leave := context.WithCancel(t.Context())
			var in atomic.Int64
			for range 20 {
				go func() {
					end, err := all.Take(ctx, holdfast.Principal{})
					if err != nil {
						return
					}
					if in.Add(1) == 1 {
						time.Sleep(time.Second)
					} else {
						<-ctx.Done()
					}
					end()
				}()
			}
			time.Sleep(8*time.Second + time.Millisecond)
			synctest.Wait()
			// One at once, one or two after the first second, and one a second then.
			if n := in.Load(); n > 10 {
				t.Errorf("%d are in", n)
			}
			leave()
		})
	}
}

// TestCostOfAFreePlace: where nobody waits, a place costs only what gives it back.
func TestCostOfAFreePlace(t *testing.T) {
	all, who := turns.New(2, 1), holdfast.Principal{Tenant: "a", User: "b"}
	if n := testing.AllocsPerRun(100, func() {
		end, err := all.Take(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		end()
	}); n > 1 {
		t.Errorf("%.0f allocations, want 1", n)
	}
}

// TestNarrowLine: while there are other tenants, a crowd goes in a narrow line once it has to wait. A
// tenant alone has all of its places, and so have a few requests that come together.
func TestNarrowLine(t *testing.T) {
	for name, c := range map[string]struct {
		before time.Duration // since another tenant has asked; 0: it has not
		want   []int         // how many of the crowd have a place, after so many have left
	}{
		"alone":                {0, []int{4, 4, 4, 4, 3}},
		"beside another":       {time.Millisecond, []int{4, 3, 2, 1, 1}},
		"another one has left": {time.Second, []int{4, 4, 4, 4, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := turns.NewPatient(5, 5, 1, time.Hour)
				if c.before > 0 {
					end, err := all.Take(t.Context(), holdfast.Principal{Tenant: "another"})
					if err != nil {
						t.Fatal(err)
					}
					end()
					time.Sleep(c.before)
				}
				var in atomic.Int64
				leave := make(chan struct{})
				for range 7 {
					go func() {
						end, err := all.Take(t.Context(), holdfast.Principal{Tenant: "crowd"})
						if err != nil {
							t.Error(err)
							return
						}
						in.Add(1)
						<-leave
						in.Add(-1)
						end()
					}()
				}
				for n, want := range c.want {
					synctest.Wait()
					if got := in.Load(); got != int64(want) {
						t.Errorf("after %d have left, %d have a place, want %d", n, got, want)
					}
					leave <- struct{}{}
				}
				close(leave)
				synctest.Wait()
			})
		})
	}
}

// TestHold: a context that has a place needs no second one, until it has given its own back; then it
// waits like all others. A place is given back once.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, who := turns.New(1, 1), holdfast.Principal{Tenant: "a"}
		held, end, err := all.Hold(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			again, err := all.Take(held, who)
			if err != nil {
				t.Fatal(err)
			}
			again()
		}
		waiting, leave := context.WithTimeoutCause(t.Context(), time.Second, io.ErrNoProgress)
		defer leave()
		if _, _, err := all.Hold(waiting, who); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("another one beside it: %v", err)
		}
		if _, err := turns.New(1, 1).Take(held, who); err != nil {
			t.Errorf("a place elsewhere: %v", err)
		}
		end()
		end()
		other, err := all.Take(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		late, leave := context.WithTimeoutCause(held, time.Second, io.ErrNoProgress)
		defer leave()
		if _, err := all.Take(late, who); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("a context that had a place: %v", err)
		}
		other()
	})
}
