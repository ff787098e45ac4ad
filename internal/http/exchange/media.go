package exchange

import "net/http"

// bulk says whether a body may be as large as it is: a photo makes a body large that is
// small otherwise, and costs no more to decode than its bytes.
type bulk struct {
	most, mostMedia int64

	media   media
	counted int // how much of the body media has counted
}

// admits checks what has come of a body, and at its end all of it. It counts nothing in
// ordinary bodies. Its error is a *[http.MaxBytesError].
func (b *bulk) admits(body []byte, whole bool) error {
	size := int64(len(body))
	if size <= b.most {
		return nil
	}
	if b.mostMedia > b.most {
		b.media.count(body[b.counted:])
		b.counted = len(body)
		switch rest := size - b.media.bytes; {
		case whole && rest < size-rest, !whole && rest-b.media.begun() <= b.mostMedia/2:
			return nil
		}
	}
	return &http.MaxBytesError{Limit: b.most}
}

// media counts how much of a body is media: runs of base64, as photos, sounds and documents
// come in. Whether they stand in a `data`, a `value` or a data: URL does not matter, and
// nothing is parsed for it: words have spaces.
type media struct {
	bytes int64 // all runs that are long enough, as far as they have come
	run   int64 // the current one, up to shortestMedia
}

// shortestMedia is how long a run must be to count: no word, key or id is.
const shortestMedia = 4 << 10

// inBase64 has true for the characters of both alphabets, and for the backslash that some
// encoders put before a slash.
var inBase64 = func() (set [256]bool) {
	for _, c := range []byte(`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\`) {
		set[c] = true
	}
	return set
}()

// count adds the next piece of a body.
func (m *media) count(piece []byte) {
	for _, c := range piece {
		switch {
		case !inBase64[c]:
			m.run = 0
		case m.run == shortestMedia:
			m.bytes++
		default:
			if m.run++; m.run == shortestMedia {
				m.bytes += shortestMedia
			}
		}
	}
}

// begun is how many bytes stand at the end that do not count yet, but may.
func (m *media) begun() int64 {
	if m.run == shortestMedia {
		return 0
	}
	return m.run
}
