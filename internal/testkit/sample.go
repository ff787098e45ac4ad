// Package testkit has helpers for tests, in a package for each thing: redistest starts Redis,
// modeltest has the tests that every provider's client must pass, prompttest measures prompts,
// looptest runs an engine without a server, and hooktest is for middleware, on agenttest. This
// one takes a part of the cases of a test that has more of them than CI has time for, and runs what is
// for Node.js.
package testkit

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// variable is the number of the part that is taken; CI sets another one with each commit.
// Without it every case is tried.
const variable = "HOLDFAST_TEST_PART"

// Sample returns one of so many parts of the cases: every parts-th, from the one that the
// variable says. Tests of the same cases in different surroundings say different shifts, so
// that together they try more of them. The choice is in the test's log.
func Sample[C any](t testing.TB, parts, shift int, cases []C) []C {
	t.Helper()
	number, ok := part(t)
	if !ok {
		return cases
	}
	first := (number + shift) % parts
	var taken []C
	for i := first; i < len(cases); i += parts {
		taken = append(taken, cases[i])
	}
	t.Logf("%s=%d: %d of %d cases, every %dth from the %dth; without it all are tried", variable, number, len(taken),
		len(cases), parts, first)
	return taken
}

// Checks has rapid.Check draw a part of its checks, which are others each time anyway. It
// is for TestMain, and -rapid.checks on the command line says otherwise.
func Checks(parts int) error {
	if os.Getenv(variable) == "" {
		return nil
	}
	checks := flag.Lookup("rapid.checks")
	all, err := strconv.Atoi(checks.DefValue)
	if err != nil {
		return err
	}
	return checks.Value.Set(strconv.Itoa(all / parts))
}

func part(t testing.TB) (number int, ok bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		t.Fatalf("%s=%s is not the number of a part, such as 3", variable, text)
	}
	return number, true
}
