package testkit

import (
	"flag"
	"slices"
	"testing"

	_ "pgregory.net/rapid" // its flags
)

func TestSample(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6}
	t.Setenv(variable, "")
	if got := Sample(t, 3, 1, cases); !slices.Equal(got, cases) {
		t.Errorf("without the variable: %v", got)
	}
	t.Setenv(variable, "10")
	var all []int
	for shift := range 3 {
		got := Sample(t, 3, shift, cases)
		if want := (10 + shift) % 3; got[0] != want || len(got) > 3 {
			t.Errorf("shifted by %d: %v, want every third from %d", shift, got, want)
		}
		all = append(all, got...)
	}
	if slices.Sort(all); !slices.Equal(all, cases) {
		t.Errorf("all shifts together: %v", all)
	}
}

func TestChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	t.Cleanup(func() {
		if err := checks.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
	for number, want := range map[string]string{"": "100", "7": "25"} {
		t.Setenv(variable, number)
		if err := checks.Value.Set("100"); err != nil {
			t.Fatal(err)
		}
		if err := Checks(4); err != nil || checks.Value.String() != want {
			t.Errorf("%s=%s: %s checks, %v; want %s", variable, number, checks.Value, err, want)
		}
	}
}
