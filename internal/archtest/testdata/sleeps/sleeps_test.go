package sleeps

import (
	"testing"
	"testing/synctest"
	"time"
)

type slow struct{}

func (slow) in() { time.Sleep(time.Second) }

func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestInside(t *testing.T) { bubble(t, func(*testing.T) { slow{}.in(); time.Sleep(time.Second) }) }

type real struct{}

func (real) out() {
	time.Sleep(time.Second)
}

func TestOutside(*testing.T) {
	real{}.out()
	time.Sleep(time.Second)
}
