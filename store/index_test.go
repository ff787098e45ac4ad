package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestListings: a commit names each list once, and never the one that follows from its owner.
func TestListings(t *testing.T) {
	listing := func(name, group string) store.Listing {
		return store.Listing{List: store.List{Name: name, Group: group}}
	}
	var most []store.Listing
	for i := range store.MaxListings {
		most = append(most, listing(store.ListAsking, fmt.Sprint("user", i)))
	}
	for name, c := range map[string]struct {
		listings []store.Listing
		valid    bool
	}{
		"none": {nil, true},
		"two of one name": {[]store.Listing{listing(store.ListAsking, "a"), listing(store.ListAsking, "b")},
			true},
		"as many as there may be": {most, true},
		"one more":                {append(most, listing(store.ListDue, "")), false},
		"one twice":               {[]store.Listing{listing(store.ListDue, ""), listing(store.ListDue, "")}, false},
		"one without a name":      {[]store.Listing{listing("", "a")}, false},
		"the owner's":             {[]store.Listing{{List: store.Owned("p")}}, false},
		"one with a name too long": {[]store.Listing{listing(store.ListAsking, strings.Repeat("x", store.MaxName+1))},
			false},
	} {
		commit := store.Commit{ID: "c", Key: store.ThreadKey{Thread: "t"}, Expect: store.Position{Next: 1},
			Listings: c.listings}
		if err := commit.Validate(); err == nil != c.valid || err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
