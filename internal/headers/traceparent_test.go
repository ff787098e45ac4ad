package headers

import (
	"strings"
	"testing"
)

const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestParseTraceparent: only what the standard allows is passed on.
func TestParseTraceparent(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		want   string
	}{
		"valid":              {[]string{good}, good},
		"of a later version": {[]string{"cc" + good[2:] + "-what-comes"}, good},
		"later, no more":     {[]string{"01" + good[2:]}, good},
		"none":               {nil, ""},
		"twice":              {[]string{good, good}, ""},
		"empty":              {[]string{""}, ""},
		"short":              {[]string{good[:54]}, ""},
		"version 00 longer":  {[]string{good + "-x"}, ""},
		"later, run on":      {[]string{"01" + good[2:] + "x"}, ""},
		"version ff":         {[]string{"ff" + good[2:]}, ""},
		"capitals":           {[]string{strings.ToUpper(good)}, ""},
		"no hex":             {[]string{strings.Replace(good, "0af7", "0ag7", 1)}, ""},
		"no trace":           {[]string{"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"}, ""},
		"no parent":          {[]string{"00-0af7651916cd43dd8448eb211c80319c-" + strings.Repeat("0", 16) + "-01"}, ""},
		"parts moved":        {[]string{"00-0af7651916cd43dd8448eb211c80319cb7ad-6b7169203331-01"}, ""},
		"five parts":         {[]string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033-1-01"}, ""},
		"a line break":       {[]string{good[:54] + "\n"}, ""},
	} {
		if got := ParseTraceparent(c.values); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := TraceID(good); got != "0af7651916cd43dd8448eb211c80319c" || TraceID("") != "" {
		t.Errorf("%q", got)
	}
}

// FuzzParseTraceparent: whatever is passed on is a trace context.
func FuzzParseTraceparent(f *testing.F) {
	f.Add(good)
	f.Add("01" + good[2:] + "-more")
	f.Fuzz(func(t *testing.T, text string) {
		got := ParseTraceparent([]string{text})
		if got == "" {
			return
		}
		if len(got) != length || strings.Trim(got, hex+"-") != "" || ParseTraceparent([]string{got}) != got {
			t.Errorf("%q of %q", got, text)
		}
	})
}
