package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// written is a request as its parts; in the text of a part, what stands between # is left
// out.
func written(model string, parts ...string) *Body {
	b := &Body{Provider: "p", Model: model}
	for p := range Parts {
		for i, piece := range strings.Split(parts[p], "#") {
			from := len(b.Bytes)
			b.Bytes = append(b.Bytes, piece...)
			if i%2 == 1 {
				b.Without = append(b.Without, [2]int{from, len(b.Bytes)})
			}
		}
		b.Ends[p] = len(b.Bytes)
	}
	b.Bytes = append(b.Bytes, "tail that is never the same"...)
	return b
}

// again is what is stored of a mark, read again.
func again(t *testing.T, m *Mark) *Mark {
	t.Helper()
	text, err := json.Marshal(struct{ M *Mark }{m})
	if err != nil || len(text) > 50 {
		t.Fatalf("%s, %v", text, err)
	}
	var read struct{ M *Mark }
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read.M
}

// TestCompare: how much of a request was in the one before, and where they part.
func TestCompare(t *testing.T) {
	before := written("m", "settings", "tools", "be kind", "a#mark#b")
	for _, c := range []struct {
		name     string
		next     *Body
		kept     Part
		repeated int
	}{
		{"the same", written("m", "settings", "tools", "be kind", "ab"), Parts, 22},
		{"longer", written("m", "settings", "tools", "be kind", "abcdef"), Parts, 22},
		{"marks elsewhere", written("m", "settings", "tools", "be kind#x#", "#y#abc#mark#d"), Parts, 22},
		{"another message", written("m", "settings", "tools", "be kind", "axc"), Messages, 20},
		{"shorter", written("m", "settings", "tools", "be kind", "a"), Messages, 20},
		{"nothing", written("m", "settings", "tools", "be kind", ""), Messages, 20},
		{"other instructions", written("m", "settings", "tools", "be KIND", "ab"), Instructions, 13},
		{"other tools", written("m", "settings", "tool2", "be kind", "ab"), Tools, 8},
		{"other settings", written("m", "Settings", "tools", "be kind", "ab"), Settings, 0},
		{"another model", written("m2", "settings", "tools", "be kind", "ab"), Settings, 0},
		{"the same bytes in other parts", written("m", "settings", "tool", "sbe kind", "ab"), Tools, 8},
	} {
		first := compare(nil, before)
		if !first.First || first.Repeated != 0 || first.Size != 22 || first.Kept != Settings {
			t.Fatalf("%+v", first)
		}
		got := compare(again(t, first.Mark), c.next)
		if got.First || got.Kept != c.kept || got.Repeated != c.repeated {
			t.Errorf("%s: the part %d and %d bytes, want %d and %d", c.name, got.Kept, got.Repeated, c.kept, c.repeated)
		}
		if text, want := again(t, got.Mark), compare(nil, c.next).Mark; *text != *want {
			t.Errorf("%s: the mark depends on what was before: %v, want %v", c.name, text, want)
		}
	}
}

// TestFollow: what is reported within the context is measured, and the last counts.
func TestFollow(t *testing.T) {
	before := compare(nil, written("m", "s", "t", "i", "m")).Mark
	ctx, tracker := Follow(t.Context(), again(t, before.Branched()), 5)
	if tracker.Last() != nil {
		t.Error("something was reported")
	}
	Shown(ctx, 1, "summary")
	Report(ctx, written("m", "s", "", "summarise", "x"))
	Shown(ctx, 5, "")
	Report(ctx, written("m", "s", "t", "i", "mn"))
	last := tracker.Last()
	if last.Fewer || last.Cut != "" || !last.Branched || last.Kept != Parts || last.Repeated != 4 || last.Size != 5 {
		t.Errorf("%+v", last)
	}
	Shown(ctx, 4, "window")
	Report(ctx, written("m", "s", "t", "i", "mn"))
	if last := tracker.Last(); !last.Fewer || last.Cut != "window" {
		t.Error("messages that were left out are not noticed")
	}
	Shown(t.Context(), 1, "") // nobody follows
	Report(t.Context(), written("m", "s", "t", "i", "m"))
}

// TestUnreadableMark: a mark that cannot be read is none.
func TestUnreadableMark(t *testing.T) {
	whole, err := compare(nil, written("m", "s", "t", "i", "m")).Mark.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "!", "AAAA", string(whole[:len(whole)-2]), strings.Repeat("/", 40)} {
		m := Mark{size: 7}
		if err := m.UnmarshalText([]byte(text)); err != nil || m.known() {
			t.Errorf("%q is read as %+v, %v", text, m, err)
		}
		if got := compare(&m, written("m", "s", "t", "i", "m")); !got.First {
			t.Errorf("a request is compared with %q", text)
		}
	}
	var none *Mark
	if none.Branched() != nil {
		t.Error("nothing has branched")
	}
}

// BenchmarkCompare measures a request of a long conversation.
func BenchmarkCompare(b *testing.B) {
	for _, kb := range []int{16, 256, 4096} {
		b.Run(fmt.Sprintf("%dKB", kb), func(b *testing.B) {
			body := &Body{Bytes: bytes.Repeat([]byte("0123456789abcdef"), kb*64)}
			n := len(body.Bytes)
			body.Ends = [Parts]int{100, n / 8, n / 7, n}
			before := compare(nil, body).Mark
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if compare(before, body).Kept != Parts {
					b.Fatal("it is not the same")
				}
			}
		})
	}
}
