package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-agents/holdfast/store"
)

// TestStrangeHints: what this package does not write is no hint, and the next hint removes
// what it can.
func TestStrangeHints(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*Store{"redis": openShared(t),
		"miniredis": openAt(t, "redis://"+miniredis.RunT(t).Addr(), "hf:")} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			micros := func(in time.Duration) string { return strconv.FormatInt(now.Add(in).UnixMicro(), 10) }
			for field, value := range map[string]string{
				"text": "text", "empty": "", "no data": micros(time.Minute), "no time": ":x", "negative": "-1:x",
				"huge":          "99999999999999999999999999:x",
				"the year 2500": "16725225600000000:x", "longer than any": micros(store.MaxHintAge+time.Minute) + ":x",
				"over": micros(-time.Second) + ":x",
				"good": micros(time.Minute) + ":a:b",
			} {
				if err := s.client.HSet(t.Context(), s.keys.hints(), field, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			told := func() []store.Hint {
				t.Helper()
				all, err := s.Hints(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
			if all := told(); len(all) != 1 || all[0].Name != "good" || string(all[0].Data) != "a:b" ||
				all[0].Left > time.Minute || all[0].Left < time.Second {
				t.Errorf("the hints are %+v", all)
			}
			if err := s.PutHint(t.Context(), "next", nil, time.Minute); err != nil {
				t.Fatal(err)
			}
			if all := told(); len(all) != 2 {
				t.Errorf("the hints are %+v", all)
			}
			left, err := s.client.HKeys(t.Context(), s.keys.hints()).Result()
			if err != nil || len(left) > 6 {
				t.Errorf("Redis still has %q, %v", left, err)
			}
			if ttl, err := s.client.PTTL(t.Context(), s.keys.hints()).
				Result(); err != nil || ttl <= time.Minute || ttl > store.MaxHintAge {
				t.Errorf("the hints expire in %s, %v", ttl, err)
			}
			if err := s.client.Set(t.Context(), s.keys.hints(), "no hash", redis.KeepTTL).Err(); err != nil {
				t.Fatal(err)
			}
			if all, err := s.Hints(t.Context()); err == nil {
				t.Errorf("the hints of something else are %+v", all)
			}
		})
	}
}
