package store

// Kind is a family of values of a thread.
type Kind string

// The kinds of values that the server stores.
const (
	KindRun        Kind = "run"        // how a run began, by run id
	KindOutcome    Kind = "outcome"    // how a run ended, by run id
	KindBlob       Kind = "blob"       // immutable content the head refers to
	KindCheckpoint Kind = "checkpoint" // by a fixed-width number
	KindIntent     Kind = "intent"     // by tool call id
	KindPending    Kind = "pending"    // pending writes, by tool call id
	KindLog        Kind = "log"        // the log of a run that has ended, by run id
	KindReuse      Kind = "reuse"      // results that calls may get instead of running
	KindOutside    Kind = "outside"    // how calls ended that are finished from outside, by tool call id
)

// Kinds returns all kinds that the server stores. A store that keeps each kind
// separately needs them to delete a thread.
func Kinds() []Kind {
	return []Kind{
		KindRun,
		KindOutcome,
		KindBlob,
		KindCheckpoint,
		KindIntent,
		KindPending,
		KindLog,
		KindReuse,
		KindOutside,
	}
}

// ValueID names a value.
type ValueID struct {
	// Kind is the family of the value.
	Kind Kind
	// ID is unique within the thread and the kind.
	ID string
}

// Value is a value with its name.
type Value struct {
	// Kind is the family of the value.
	Kind Kind
	// ID is unique within the thread and the kind.
	ID string
	// Data is the value itself, opaque to the store.
	Data []byte
}

// Message is a message in a thread's tree.
type Message struct {
	// ID is unique within the thread.
	ID string
	// Parent is the id of the message before it; empty for the first.
	Parent string
	// Data is the message itself, opaque to the store.
	Data []byte
}

// Record is one event in a thread's log.
type Record struct {
	Cursor
	// Data is the event itself, opaque to the store.
	Data []byte
}

// InboxItem is a message to the owner of a thread.
type InboxItem struct {
	// ID makes posting idempotent.
	ID string
	// Number is assigned by the store: items are numbered from 1 in order of arrival.
	Number uint64
	// Data is the message itself, opaque to the store.
	Data []byte
}

// OwnedThread is a thread with an owner.
type OwnedThread struct {
	// Key names the thread.
	Key ThreadKey
	// Process is the id of the process that owns it, whether or not it is alive.
	Process string
}
