package redaction_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// credentials is a struct with a secret, perhaps behind pointers.
type credentials struct {
	User  string
	Inner *credentials
}

type valuer struct{ text string }

func (v valuer) LogValue() slog.Value { return slog.StringValue(v.text) }

type jsonError struct{ Key string }

func (e jsonError) Error() string { return "an error" }

func (e jsonError) MarshalJSON() ([]byte, error) { return json.Marshal(e.Key) }

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("no") }

// TestLogHandler: whatever a secret is in, it is not in the line.
func TestLogHandler(t *testing.T) {
	t.Parallel()
	key := secrets["aws"]
	for name, log := range map[string]func(*slog.Logger){
		"a message":        func(l *slog.Logger) { l.Info("the key is " + key) },
		"a text":           func(l *slog.Logger) { l.Info("x", "a", 1, "key", key, "b", 2) },
		"an error":         func(l *slog.Logger) { l.Info("x", "error", fmt.Errorf("bad %w", errors.New(key))) },
		"an error as JSON": func(l *slog.Logger) { l.Info("x", "error", jsonError{key}) },
		"bytes":            func(l *slog.Logger) { l.Info("x", "body", []byte(key)) },
		"a struct":         func(l *slog.Logger) { l.Info("x", "v", credentials{User: key}) },
		"behind a pointer": func(l *slog.Logger) {
			l.Info("x", "v", &credentials{Inner: &credentials{Inner: &credentials{User: key}}})
		},
		"a map":             func(l *slog.Logger) { l.Info("x", "v", map[string]any{"list": []string{"a", key}}) },
		"a group":           func(l *slog.Logger) { l.Info("x", slog.Group("g", "a", 1, slog.Group("h", "key", key))) },
		"a LogValuer":       func(l *slog.Logger) { l.Info("x", "v", valuer{key}) },
		"attributes before": func(l *slog.Logger) { l.With("a", 1, "key", key).WithGroup("g").Info("x", "b", 2) },
	} {
		for kind, handler := range map[string]func(io.Writer) slog.Handler{
			"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
			"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		} {
			var out bytes.Buffer
			log(slog.New(redaction.NewLogHandler(handler(&out), redaction.Options{})))
			if got := out.String(); strings.Contains(got, key) || !strings.Contains(got, "[redacted:api_key]") {
				t.Errorf("%s in %s: %s", name, kind, got)
			}
		}
	}
}

func TestLogHandlerOfNumbers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := slog.New(redaction.NewLogHandler(slog.NewTextHandler(&out, nil), redaction.Options{}))
	l.Info("x", "card", int64(4111111111111111), "other", uint64(5555555555554444))
	if got := out.String(); !strings.Contains(got, "card=[redacted:card_number] other=[redacted:card_number]") {
		t.Error(got)
	}
}

// TestLogHandlerLeavesTheRestAlone: a line without secrets is unchanged.
func TestLogHandlerLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	line := func(wrap func(slog.Handler) slog.Handler) string {
		var out bytes.Buffer
		h := slog.NewJSONHandler(&out, &slog.HandlerOptions{AddSource: true,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})
		l := slog.New(wrap(h)).With("server", "one").WithGroup("g")
		l.Debug("not enabled")
		l.Warn("fine", "n", int64(7), "u", uint64(8), "f", 1.5, "t", time.Unix(0, 0).UTC(), "d", time.Second, "b",
			true, "e", errors.New("oh"), "v", credentials{User: "me"}, slog.Group("h", "x", "y"), "p", panicking{},
			"nil", nil)
		return out.String()
	}
	plain := line(func(h slog.Handler) slog.Handler { return h })
	got := line(func(h slog.Handler) slog.Handler { return redaction.NewLogHandler(h, redaction.Options{}) })
	if got != plain {
		t.Errorf("got  %swant %s", got, plain)
	}
}

// TestLogHandlerWithInvalidOptions: a mistake in the program is a panic.
func TestLogHandlerWithInvalidOptions(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "redaction.NewLogHandler: patterns[0]: ") {
			t.Errorf("got %s", p)
		}
	}()
	redaction.NewLogHandler(slog.DiscardHandler,
		redaction.Options{Patterns: []redaction.Pattern{{Name: "a", Regexp: "("}}})
}

func BenchmarkLogHandler(b *testing.B) {
	quiet := slog.NewJSONHandler(io.Discard, nil)
	for name, h := range map[string]slog.Handler{"plain": quiet,
		"redacted": redaction.NewLogHandler(quiet, redaction.Options{})} {
		b.Run(name, func(b *testing.B) {
			l := slog.New(h)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				l.InfoContext(ctx, "run ended", "thread", "thread-0123456789", "run", "run-0123456789", "iteration", 7,
					"outcome", "success", "took", time.Second)
			}
		})
	}
}
