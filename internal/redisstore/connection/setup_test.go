package connection

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestWeakest: the weakest node decides for the cluster, and notes name their nodes.
func TestWeakest(t *testing.T) {
	t.Parallel()
	good := store.Durability{Level: store.LevelMachine, Policy: "noeviction"}
	bad := store.Durability{Level: store.LevelProcess, Policy: "allkeys-lru", Evicts: true, Notes: []string{"n"}}
	got := Weakest(map[string]store.Durability{"a:1": good, "b:1": bad, "c:1": good, "d:1": bad})
	if got.Level != store.LevelProcess || !got.Evicts || got.Policy != "allkeys-lru" ||
		!slices.Equal(got.Notes, []string{"n (b:1, d:1)"}) {
		t.Errorf("%+v", got)
	}
}

// TestInspectVersion: a version that is too old is an error, an old one a note.
func TestInspectVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"5.0.7": "use 6.2 or newer", "6.0.16": "use 6.2 or newer",
		"6.2.14": "older than 7.0", "7.0.15": "", "7.2.4": "", "10.0.1": ""} {
		note, err := (&facts{info: map[string]string{"redis_version": version}}).version()
		if err != nil {
			note = err.Error()
		}
		if !strings.Contains(note, want) || want == "" && note != "" || (err != nil) != strings.HasPrefix(want, "use") {
			t.Errorf("%s: %q, %v", version, note, err)
		}
	}
}
