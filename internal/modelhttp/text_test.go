package modelhttp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSeam: a character that is cut in the middle is put together again.
func TestSeam(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string // between quotes
		want   string
	}{
		"whole":                   {[]string{"a", "é", `\ud83d\ude00\n`}, "aé😀\n"},
		"between escapes":         {[]string{`a\ud83d`, `\ude00b`}, "a😀b"},
		"between escapes, twice":  {[]string{`\uD83D`, `\uDE00\uD83D`, `\uDE01`}, "😀😁"},
		"an empty piece between":  {[]string{`\ud83d`, "", `\ude00`}, "😀"},
		"between bytes":           {[]string{"a\xf0\x9f", "\x98\x80b"}, "a😀b"},
		"byte by byte":            {[]string{"\xf0", "\x9f", "\x98", "\x80", "\xc3", "\xa9"}, "😀é"},
		"a first half alone":      {[]string{`\ud83d`, "x"}, "\ufffdx"},
		"a second half alone":     {[]string{"x", `\ude00`, "y"}, "x\ufffdy"},
		"halves in the wrong way": {[]string{`\ude00`, `\ud83d`, `\ude00`}, "\ufffd😀"},
		"bytes that are nothing":  {[]string{"\xff", "a\x80"}, "\ufffda\ufffd"},
		"a replacement character": {[]string{"\ufffd", `\ufffd\"\\\/`}, "\ufffd\ufffd\"\\/"},
		"cut at the end":          {[]string{"a", `b\ud83d`}, "ab"},
	} {
		var seam Seam
		got := ""
		for _, piece := range c.pieces {
			var text Text
			if err := json.Unmarshal([]byte(`"`+piece+`"`), &text); err != nil {
				t.Fatal(err)
			}
			got += seam.Join(string(text))
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// FuzzSeam: a text is the same wherever it is cut, and always valid.
func FuzzSeam(f *testing.F) {
	f.Add(`"a\ud83d\ude00\n"`, uint(4))
	f.Add("\"\xf0\x9f\x98\x80\"", uint(2))
	f.Add("\"\xed\xa0\xbd\xed\xb8\x80\"", uint(3))
	f.Add(`"\ud83d\ufffd\ude00"`, uint(1))
	f.Fuzz(func(t *testing.T, raw string, at uint) {
		var text Text
		var want string
		err, err2 := json.Unmarshal([]byte(raw), &text), json.Unmarshal([]byte(raw), &want)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, decoded %v", raw, err, err2)
		}
		var whole, pieces Seam
		s := string(text)
		at %= uint(len(s) + 1)
		for back := uint(1); back <= min(at, 2); back++ {
			if surrogate(s[at-back:]) != 0 {
				return // no piece ends within a surrogate
			}
		}
		one, two := whole.Join(s), pieces.Join(s[:at])+pieces.Join(s[at:])
		if one != two || !utf8.ValidString(one) || whole != pieces {
			t.Errorf("%q: in one piece %q, cut at %d %q", raw, one, at, two)
		}
		// Without halves it is what decoding alone gives.
		if err == nil && !strings.ContainsRune(want, utf8.RuneError) && one != want {
			t.Errorf("%q: %q, decoded %q", raw, one, want)
		}
	})
}
