package lost // want package:"registers .*"

import (
	"net/url"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/holdfast-agents/holdfast/state"
)

type half struct{ N int }

func (half) MarshalJSON() ([]byte, error) { return nil, nil }

type point struct{ X, Y int }

type hidden struct{ N int }

type deep struct {
	Wait chan int // want `HF004: record.Deep\[\]\[\].Wait \(chan int\) does not survive a checkpoint: encoding/json refuses channels`
}

type record struct {
	*hidden                  // want `HF004: record.hidden .* embedded pointer to an unexported type`
	Done    chan struct{}    // want `HF004: record.Done \(chan struct{}\)`
	Call    func()           // want `HF004: .*refuses functions.* json:"-"`
	Root    complex128       // want `HF004: .*complex`
	Addr    unsafe.Pointer   // want `HF004: .*address`
	Any     any              // want `HF004: .*map\[string\]any`
	Another any              // want `HF004`
	Err     error            // want `HF004`
	Map     map[string]any   // want `HF004: record.Map\[\] \(any\)`
	mu      sync.Mutex       // want `HF004: .*a lock or an atomic`
	N       atomic.Int64     // want `HF004: .*a lock or an atomic`
	count   int              // want `HF004: record.count \(int\).*unexported fields`
	ByPoint map[point]string // want `HF004: .*keys`
	Half    half             // want `HF004: .*but not both`
	Link    *url.URL         // want `HF004: record.Link.User.username`
	Link2   url.URL          // want `HF004`
	Deep    map[string][]deep
	Fine    chan int `json:"-"`
	Stamp   stamped  // want `HF004: record.Stamp \(stamped\).*MarshalJSON of an embedded type`
	//holdfast:allow HF004
	NoReason any // want `HF004: .* does not count: it needs a reason`
}

type stamped struct {
	time.Time
	N int
}

var (
	_ = state.Register(state.Spec[record]{Name: "acme.lost"})
	_ = state.Register(state.Spec[url.Userinfo]{Name: "acme.foreign"}) // want `HF004: url.Userinfo.username`
)
