package both // want package:"registers acme.across acme.across"

import (
	"context"

	"dup/one"
	_ "dup/two" // want `HF003: two imported packages register the name "acme.across": State \(dup/one, one.go:7:11\) and Other \(dup/two, two.go:7:11\)`
)

// A key of another package is followed too.
func use(ctx context.Context) {
	_, _ = one.Key.Load(ctx)
}
