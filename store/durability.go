package store

import "context"

// Durable is a [Store] that can say what its commits survive.
type Durable interface {
	// Durability looks at how the store is currently set up.
	Durability(ctx context.Context) (Durability, error)
}

// CommitChecker is a [Store] that can say whether it would accept a commit.
type CommitChecker interface {
	// CanCommit returns why commits are refused at the moment, for example because
	// the disk is full; nil when they are not. It changes nothing.
	CanCommit(ctx context.Context) error
}

// Backuper is a [Store] that can copy itself while it is used.
type Backuper interface {
	// Backup writes everything that was acknowledged before the call, and perhaps some of
	// what follows, to a new directory, from which it can be opened. The error wraps
	// [io/fs.ErrExist] if the directory exists.
	Backup(ctx context.Context, dir string) error
}

// Durability is what a commit that has returned survives.
type Durability struct {
	// Level is the strongest level that holds.
	Level Level
	// Notes are what an operator should know: why the level is not higher, or what is
	// at risk.
	Notes []string
	// Evicts: the store may discard data when it is full, so it must not be used.
	Evicts bool
	// Policy is the store's own name for its eviction policy; empty if it has none.
	Policy string
}

// Level is a level of durability.
type Level string

// The levels.
const (
	// LevelNone: nothing survives the end of this process.
	LevelNone Level = "none"
	// LevelProcess: commits survive the end of this process, but not necessarily a
	// crash of the machine or of the store.
	LevelProcess Level = "process"
	// LevelMachine: commits survive a crash of the machine.
	LevelMachine Level = "machine"
	// LevelFailover: commits survive the loss of the store's primary, if a replica that has
	// them takes its place. The level that they survive without that is in the notes.
	LevelFailover Level = "failover"
)
