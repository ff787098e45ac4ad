package strictjson

import (
	"encoding/json"
	"testing"
)

// TestAppendText: a text is written as encoding/json writes it.
func TestAppendText(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, text := range []string{
		"", "word ", string(all), "naïve 日本 🙂", "\u2028\u2029\ufffd", "a\xc3", "\xed\xa0\xbd",
		"<b>&\"\\\n\r\t\b\f</b>",
	} {
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendText(nil, text); string(got) != string(want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
