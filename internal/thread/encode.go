package thread

import (
	"encoding/json"
	"errors"
	"fmt"
)

var (
	// ErrUnreadable means that the bytes are not what any version has written.
	ErrUnreadable = errors.New("a stored value cannot be read")
	// ErrNegative means that a counter is negative.
	ErrNegative = errors.New("a checkpoint has a negative counter")
)

// MustJSON encodes one of this package's own stored values, which can always be encoded.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("thread: encode %T: %v", v, err))
	}
	return b
}

// Decode reads one of this package's stored values into v. It returns ErrUnreadable, or
// [store.ErrVersionTooNew] for a format that this version does not know.
func Decode(b []byte, v any) error {
	var f struct {
		Format int `json:"dataFormat"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", ErrUnreadable, err)
	}
	if err := checkFormat("a value", f.Format); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read a stored value: %w: %w", ErrUnreadable, err)
	}
	return nil
}
