package frame_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/store"
	"go.uber.org/goleak"
)

// Values come out as they went in, for all sizes; everything ever written can be read;
// damaged, newer or hostile data are an error.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCodec(tb testing.TB) *frame.Codec {
	tb.Helper()
	c, err := frame.New()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// overhead is the size of a frame without its body.
const overhead = 5

// noise does not compress.
func noise(size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b) // it never fails
	return b
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	prose := []byte(strings.Repeat("All work and no play. ", 1<<18))
	for _, size := range []int{0, 1, 255, 256, 257, 1024, 3000, 100_000, 5 << 20} {
		for name, raw := range map[string][]byte{"noise": noise(size), "prose": prose[:size]} {
			data := c.Encode(nil, "n", raw)
			got, err := c.Decode(nil, "n", data)
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%d bytes of %s came back as %d bytes, %v", size, name, len(got), err)
			}
			if len(data) > len(raw)+overhead {
				t.Errorf("%d bytes of %s became %d", size, name, len(data))
			}
			if name == "prose" && size > 256 && len(data) > size/2 {
				t.Errorf("%d bytes of prose became %d: not compressed", size, len(data))
			}
		}
	}
}

// TestStoredForever: what was ever written stays readable. These bytes never change.
func TestStoredForever(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	for data, want := range map[string]string{
		"\x06\xa7\rRa":        "",
		"\x06\x81?\xb8|hello": "hello",
		"\ny\x12\r\x14(\xb5/\xfd`\b\x06\x8d\x00\x00Hholdfast \x01T\t\x03.\xfc2": strings.Repeat("holdfast ", 200),
		"\t=\xd7ev(\xb5/\xfd\x01\x00\x01]\x02\x00\xd4\x0218ea6a855a93d11d_0ortcxkmg4gsyno5144166528Z\"}\b" +
			"\x00]\xe4\x0e\xa0\x01~\u0602\x94}\x18\r\x93\x1c\xc0\x80\x86\xb3X\x02\x94͇9\a\x01": own,
		"\x05.v\xe9h\xa6\x01B;\x04\x00c20\x00D18ea6a855a93d11d_0\rW\x00\"\x12\xc6\t\bortj^\x01(cxkmg4gsyno6\x13" +
			"\x04\x0451Re\b:Z\x04(44166528Z\"}": own,
		"\f\n%E\x13O\x1fZ8\xbb\xe9:A\xdfs\xeeꍈ\r\xd9h}\x9d\x8d\xd7\xc2^/|\xdc[~\xa3\xd3j\xfer\xad*\x95yⱅ\xd5\xe0J" +
			"\x9aǃX\xef\n9\xfcB\xd7]\xef=L\xd5ɗ\xba\xab\x83Ao8\\\uf3fe\xb45\a": own,
	} {
		if got, err := c.Decode([]byte("own"), "name", []byte(data)); err != nil || string(got) != want ||
			!frame.Summed([]byte(data)) {
			t.Errorf("Decode(%q) is %q, %v, want %q", data, got, err, want)
		}
	}
}

// own is a value of the server's own making.
const own = `{"dataFormat":1,"callId":"call_18ea6a855a93d11d_0","tool":"report",` +
	`"messageId":"msg_1k82112ecxkmg4gsyno","iteration":51,"completedAt":"2026-11-22T16:22:02.44166528Z"}`

// TestOwn: phrases make the server's own values small, whatever else they hold, and no bit of
// the result can flip without being found.
func TestOwn(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	for _, raw := range []string{"", "short", own, own + string(noise(100)), strings.Repeat(own, 20),
		strings.Repeat(own, 40), string(noise(2000)), string(noise(8000))} {
		data := c.EncodeOwn([]byte("own"), "name", []byte(raw))
		got, err := c.Decode(data[:3], "name", data[3:])
		if err != nil || string(got) != raw || len(data) > len(raw)+3+overhead || !frame.Summed(data[3:]) {
			t.Errorf("%d bytes became %d and came back as %d, %v", len(raw), len(data), len(got), err)
		}
	}
	data := c.EncodeOwn(nil, "name", []byte(own))
	if len(data) > len(own)/2+overhead {
		t.Errorf("%d bytes became %d", len(own), len(data))
	}
	for bit := range 8 * len(data) {
		data[bit/8] ^= 1 << (bit % 8)
		if _, err := c.Decode(nil, "name", data); !errors.Is(err, store.ErrUnreadable) ||
			errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("bit %d: %v, want ErrUnreadable", bit, err)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}

// TestFilesInBase64: a file in base64 has nothing that repeats, but takes only as many bytes as the file.
func TestFilesInBase64(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	file := noise(300_000)
	raw := []byte(base64.StdEncoding.EncodeToString(file))
	data := c.Encode(nil, "n", raw)
	if most := len(file) * 101 / 100; len(data) > most {
		t.Errorf("%d bytes of base64 take %d bytes, want at most %d", len(raw), len(data), most)
	}
	if got, err := c.Decode(nil, "n", data); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("it comes back with %d bytes: %v", len(got), err)
	}
}

func TestAppends(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	for _, raw := range [][]byte{[]byte("small"), bytes.Repeat([]byte("large "), 1000), noise(2000)} {
		data := c.Encode([]byte("before"), "n", raw)
		rest, found := bytes.CutPrefix(data, []byte("before"))
		got, err := c.Decode([]byte("before"), "n", rest)
		if !found || err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d bytes after a prefix: %v", len(raw), err)
		}
	}
}

func TestDecodeCopies(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	data := c.Encode(nil, "n", []byte("small"))
	got, err := c.Decode(nil, "n", data)
	if err != nil {
		t.Fatal(err)
	}
	data[overhead] = 'x'
	if string(got) != "small" {
		t.Errorf("the decoded value shares memory with its source: %q", got)
	}
}

// compressed returns a frame of the name n with a body that claims to be of zstd, and the right
// checksum.
func compressed(body []byte) []byte { return framed(10, body) }

// framed returns a frame of the name n with a body that claims to be of a codec, and the right
// checksum.
func framed(codec byte, body []byte) []byte {
	sum := crc32.Checksum(slices.Concat([]byte{'n', codec}, body), crc32.MakeTable(crc32.Castagnoli))
	return append(binary.LittleEndian.AppendUint32([]byte{codec}, sum), body...)
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	good := c.Encode(nil, "n", bytes.Repeat([]byte("large "), 1000))
	for name, data := range map[string][]byte{
		"nothing": nil, "a codec id": good[:1], "half a checksum": good[:3], "cut": good[:len(good)-1],
		"zeros": {0, 0, 0, 0, 0, 0}, "no codec": {0, 'a', 'b', 'c', 'd', 'e'}, "too long": append(bytes.Clone(good), 0),
	} {
		got, err := c.Decode(nil, "n", data)
		if !errors.Is(err, store.ErrUnreadable) || errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("%s: %d bytes, %v, want ErrUnreadable", name, len(got), err)
		}
	}
	for name, body := range map[string][]byte{"no zstd": {2}, "empty zstd": {}} {
		if got, err := c.Decode(nil, "n", compressed(body)); !errors.Is(err, store.ErrUnreadable) {
			t.Errorf("%s: %d bytes, %v, want ErrUnreadable", name, len(got), err)
		}
	}
	// Blocks of phrases: none, of no content, cut, one that reaches before the phrases, and one
	// that would be larger than any that is written.
	for _, body := range []string{"", "\x00", "\x05", "\x05\x12\xff\xff", "\x90\x4e\x02\x00\x00"} {
		got, err := c.Decode(nil, "n", framed(5, []byte(body)))
		if !errors.Is(err, store.ErrUnreadable) || errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("the phrases %q: %d bytes, %v, want ErrUnreadable", body, len(got), err)
		}
	}
	// Letters: none, too many, cut, with more behind them, and no phrases.
	for _, body := range []string{"", "\x00", "\xff\xff\x7f", "\x05\x00", "\x01\x00\x00\x00\x00\x00", "\x01\x3f",
		"\x01\x0f"} {
		got, err := c.Decode(nil, "n", framed(12, []byte(body)))
		if !errors.Is(err, store.ErrUnreadable) || errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("the letters %q: %d bytes, %v, want ErrUnreadable", body, len(got), err)
		}
	}
	for _, codec := range []byte{1, 2, 99, 255} {
		if _, err := c.Decode(nil, "n", []byte{codec, 1, 2, 3, 4, 5}); !errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("codec %d: %v, want ErrVersionTooNew", codec, err)
		}
	}
}

// TestFlips: no bit can flip without being found, neither in a frame nor in what it is
// stored with.
func TestFlips(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	own, name := []byte("own"), "name"
	for _, raw := range [][]byte{nil, []byte("small"), bytes.Repeat([]byte("large "), 1000), noise(2000)} {
		data := c.Encode(bytes.Clone(own), name, raw)
		for bit := range 8 * len(data) {
			data[bit/8] ^= 1 << (bit % 8)
			got, err := c.Decode(data[:len(own)], name, data[len(own):])
			if !errors.Is(err, store.ErrUnreadable) || errors.Is(err, store.ErrVersionTooNew) {
				t.Errorf("bit %d of %d bytes: %d bytes, %v, want ErrUnreadable", bit, len(data), len(got), err)
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
		if _, err := c.Decode(own, "nbme", data[len(own):]); !errors.Is(err, store.ErrUnreadable) {
			t.Errorf("under another name: %v, want ErrUnreadable", err)
		}
	}
}

// TestPhrases: values of phrases, of text, of both, and of repetitions of any length come out as
// they went in, at every size that phrases are used for.
func TestPhrases(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	texts := []string{strings.Repeat(own, 25), strings.Repeat("a", 4096),
		strings.Repeat(own[:100]+string(noise(70)), 25),
		own + string(noise(300)) + strings.Repeat(own[20:90], 60)}
	for _, text := range texts {
		for size := range 4100 {
			raw := text[:min(size, len(text))]
			got, err := c.Decode([]byte("own"), "name", c.EncodeOwn([]byte("own"), "name", []byte(raw))[3:])
			if err != nil || string(got) != raw {
				t.Fatalf("%d bytes came back as %d, %v", len(raw), len(got), err)
			}
		}
	}
}

// TestBomb: a few bytes that would expand beyond the limit are refused before any memory
// is allocated for them.
func TestBomb(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	// A frame that claims 1 TB.
	bomb := compressed([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 0x03, 0, 0})
	if got, err := c.Decode(nil, "n", bomb); err == nil {
		t.Errorf("the bomb became %d bytes", len(got))
	}
	// Data that would be too large to decode are not compressed.
	huge := make([]byte, 64<<20+1)
	if got, err := c.Decode(nil, "n", c.Encode(nil, "n", huge)); err != nil || len(got) != len(huge) {
		t.Errorf("%d bytes came back as %d, %v", len(huge), len(got), err)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			raw := bytes.Repeat([]byte{byte(w)}, 3000)
			for range 100 {
				if got, err := c.Decode(nil, "n", c.Encode(nil, "n", raw)); err != nil || !bytes.Equal(got, raw) {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestCostOfPhrases: a value of phrases costs its frame's memory and the name for its checksum, and
// no more.
func TestCostOfPhrases(t *testing.T) {
	c := newCodec(t)
	raw, room := []byte(own), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { c.EncodeOwn(room, "name", raw) }); n > 1 {
		t.Errorf("%.0f allocations besides the frame's own memory", n)
	}
	if n := testing.AllocsPerRun(100, func() { c.EncodeOwn(nil, "name", raw) }); n > 3 {
		t.Errorf("%.0f allocations for a frame that grows", n)
	}
}

func BenchmarkOwn(b *testing.B) {
	c, room := newCodec(b), make([]byte, 0, 2048)
	for name, raw := range map[string]string{"short": own, "text": own + text} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.EncodeOwn(room, "name", []byte(raw))
			}
			b.ReportMetric(float64(len(c.EncodeOwn(room, "name", []byte(raw)))), "bytes")
		})
	}
}

// text is prose, as a model writes it.
const text = "The warehouse in the north has forty of them in stock, and twelve more are on their way from the port. " +
	"If you need all of them by Friday, I would ask the supplier today, because the last order took nine days. Shall " +
	"I write to them, or do you want to see the prices first? The cheapest offer is from March, " +
	"and it may be over by now."

// TestText: the server's values with some text in them, and other text, take little.
func TestText(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	for raw, most := range map[string]int{
		own + text: 290,
		text:       222,
		strings.Repeat("Zażółć gęślą jaźń ", 4) + own: 130,
		strings.Repeat("日本語の文章です。", 8) + own:          130,
	} {
		data := c.EncodeOwn(nil, "name", []byte(raw))
		if got, err := c.Decode(nil, "name", data); err != nil || string(got) != raw || len(data) > most {
			t.Errorf("%d bytes became %d, more than %d, and came back as %q, %v", len(raw), len(data), most, got, err)
		}
	}
}

// TestEarlier: for a version that does not know common letters, none are written, and those that others
// have written are read.
func TestEarlier(t *testing.T) {
	t.Parallel()
	c := newCodec(t)
	earlier, letters := c.Earlier(), 0
	for raw := range strings.SplitSeq(own+"|"+own+text+"|"+text, "|") {
		for _, data := range [][]byte{
			c.EncodeOwn(nil, "n", []byte(raw)), earlier.EncodeOwn(nil, "n", []byte(raw)),
			earlier.Encode(nil, "n", []byte(raw)),
		} {
			if got, err := earlier.Decode(nil, "n", data); err != nil || string(got) != raw {
				t.Errorf("%q came back as %q, %v", raw, got, err)
			}
		}
		if c.EncodeOwn(nil, "n", []byte(raw))[0] == 12 {
			letters++
		}
		if id := earlier.EncodeOwn(nil, "n", []byte(raw))[0]; id > 10 {
			t.Errorf("the codec %d is written", id)
		}
	}
	if letters == 0 {
		t.Error("no value has letters")
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(nil), uint16(0))
	f.Add([]byte("some text "), uint16(300))
	f.Add([]byte(own), uint16(3))
	c := newCodec(f)
	f.Fuzz(func(t *testing.T, raw []byte, times uint16) {
		raw = bytes.Repeat(raw, int(times%512)+1)
		for _, data := range [][]byte{c.Encode(nil, "n", raw), c.EncodeOwn(nil, "n", raw)} {
			got, err := c.Decode(nil, "n", data)
			if err != nil || !bytes.Equal(got, raw) || len(data) > len(raw)+overhead {
				t.Errorf("%d bytes became %d and came back as %d, %v", len(raw), len(data), len(got), err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	c := newCodec(f)
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2})
	f.Add([]byte{7})
	f.Add(c.EncodeOwn(nil, "n", []byte(own)))
	f.Add(c.EncodeOwn(nil, "n", []byte(text)))
	f.Add(c.Encode(nil, "n", bytes.Repeat([]byte("large "), 500)))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, err := c.Decode(nil, "n", data)
		if err == nil && !frame.Summed(data) {
			t.Errorf("%q gave %d bytes", data, len(raw))
		}
	})
}
