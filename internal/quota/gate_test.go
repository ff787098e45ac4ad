package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
)

// user returns a user of the tenant.
func user(tenant string, n int) holdfast.Principal {
	return holdfast.Principal{Tenant: tenant, User: fmt.Sprint("user", n)}
}

// several reports that there are several.
func several(string) bool { return true }

// TestFairWithoutConfiguration: of users who take all that they get, one after the other, the
// first gets most, and those who come later find room.
func TestFairWithoutConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*quota.Config)
		want   string // how many runs the users get
	}{
		"a thousand": {func(c *quota.Config) { c.AllRuns, c.SeveralUsers = 1000, several }, "750 125 63 31 16 8 4 2 1"},
		"eight":      {func(c *quota.Config) { c.AllRuns, c.SeveralUsers = 8, several }, "6 1 1"},
		"four":       {func(c *quota.Config) { c.AllRuns, c.SeveralUsers = 4, several }, "3 1"},
		"two":        {func(c *quota.Config) { c.AllRuns, c.SeveralUsers = 2, several }, "1 1"},
		"one":        {func(c *quota.Config) { c.AllRuns, c.SeveralUsers = 1, several }, "1"},
		"one user":   {func(c *quota.Config) { c.AllRuns = 8 }, "8"},
		"a limit of users": {func(c *quota.Config) {
			c.AllRuns, c.SeveralUsers, c.PerUser.Runs = 8, several, 7
		}, "7 1"},
		"a limit of the tenant": {func(c *quota.Config) {
			c.AllRuns, c.SeveralUsers, c.PerTenant.Runs = 100, several, 8
		}, "6 1 1"},
		"several tenants": {func(c *quota.Config) {
			c.AllRuns, c.Share, c.Several, c.SeveralUsers = 64, 16, func() bool { return true }, several
		}, "12 2 1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := limiter(t, memstore.New(), c.change)
			var got []string
			for n := range 9 {
				runs := 0
				for runs < 2000 && l.TakeRun(user("acme", n)) == nil {
					if runs++; runs+sum(got) > int(limitOf(c.change)) {
						l.FreeRun(user("acme", n)) // the engine has no place for it
						runs--
						break
					}
				}
				if runs > 0 {
					got = append(got, fmt.Sprint(runs))
				}
			}
			if all := strings.Join(got, " "); all != c.want {
				t.Errorf("the users get %s, want %s", all, c.want)
			}
		})
	}
}

// limitOf returns how many runs the process may have.
func limitOf(change func(*quota.Config)) int64 {
	var c quota.Config
	change(&c)
	return c.AllRuns
}

func sum(numbers []string) (all int) {
	for _, n := range numbers {
		var one int
		_, _ = fmt.Sscan(n, &one) // they are numbers
		all += one
	}
	return all
}

// TestFairBetweenTenants: a tenant that takes all the streams that it gets leaves some to
// others, also to its own other users.
func TestFairBetweenTenants(t *testing.T) {
	t.Parallel()
	l := limiter(t, memstore.New(), func(c *quota.Config) {
		c.AllStreams, c.Several, c.SeveralUsers = 1600, func() bool { return true }, several
	})
	opens := func(who holdfast.Principal) (n int) {
		for n < 2000 {
			if _, err := l.OpenStream(who); err != nil {
				return n
			}
			n++
		}
		return n
	}
	got := []int{
		opens(user("a", 1)),
		opens(user("a", 2)),
		opens(user("b", 1)),
		opens(user("b", 2)),
		opens(user("c", 1)),
	}
	if want := []int{900, 150, 207, 34, 117}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("they get %v, want %v", got, want)
	}
}

// TestStreamBytes: what streams hold is bounded, for all and for each user, and so, by itself,
// is what exports hold; what is larger than one may have is let in, and leaves others their
// part; and the errors name the limit.
func TestStreamBytes(t *testing.T) {
	t.Parallel()
	l := limiter(t, memstore.New(), func(c *quota.Config) { c.AllStreamBytes, c.SeveralUsers = 1000, several })
	large, err := l.HoldBytes(alice, 5000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.HoldBytes(alice, 1); scopeOf(err) != "user" {
		t.Errorf("beside a stream that holds all: %v", err)
	}
	if _, err := l.HoldBytes(bob, 251); scopeOf(err) != "server" {
		t.Errorf("more than there is: %v", err)
	}
	for _, who := range []holdfast.Principal{alice, bob} {
		taken, err := l.HoldExport(who, 100)
		if err != nil {
			t.Error(err)
		}
		defer taken()
	}
	taken, err := l.HoldBytes(bob, 100)
	if err != nil {
		t.Errorf("another user: %v", err)
	}
	taken()
	large()
	large()
	for range 7 {
		if _, err := l.HoldBytes(alice, 100); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.HoldBytes(alice, 100); scopeOf(err) != "user" ||
		!strings.Contains(holdfast.AsError(err).Hint, "settings.maxStreamBytes") {
		t.Errorf("an eighth of the same user: %v", err)
	}
	if _, err := l.HoldBytes(bob, 150); err != nil {
		t.Errorf("another user: %v", err)
	}
}
