package redisstore

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestKeysOfAThread: all keys of a thread have the same tag in braces, which puts them
// in one hash slot.
func TestKeysOfAThread(t *testing.T) {
	t.Parallel()
	s := openAt(t, shared.Server(t).Database(t), "hf:")
	advance(t, s, aThread("a{b}:c"), func(c *store.Commit) {
		c.Messages = []store.Message{{ID: "m"}}
		c.Put = []store.Value{{Kind: store.KindCheckpoint, ID: "1"}, {Kind: store.KindBlob, ID: "b"}}
	})
	keys, err := s.client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	across := func(key string) bool {
		return strings.HasPrefix(key, "hf:active:{") || strings.HasPrefix(key, "hf:day") ||
			strings.HasPrefix(key, "hf:span")
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "hf:{acme/a%7Bb%7D%3Ac}:") && !across(key) {
			t.Errorf("unexpected key %s", key)
		}
	}
	if got, ok := parseTag(tag(aThread("a{b}:c"))); !ok || got != aThread("a{b}:c") {
		t.Errorf("the thread is named %v", got)
	}
}
