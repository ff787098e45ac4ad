// Package holdfast has the signatures of the real one that the analysis looks at.
package holdfast

import (
	"context"
	"encoding/json"
)

type StateScope string

type Migration func(old json.RawMessage) (json.RawMessage, error)

type StateSpec[T any] struct {
	Name       string
	Version    int
	Scope      StateScope
	Initial    func() T
	Migrations map[int]Migration
	Redact     func(T) any
}

type States struct{}

type StateKey[T any] struct{ spec StateSpec[T] }

func RegisterState[T any](spec StateSpec[T]) *StateKey[T] { return &StateKey[T]{spec} }

func (k *StateKey[T]) Get(s *States) (T, error)                                     { panic("stub") }
func (k *StateKey[T]) With(s *States, value T) *States                              { panic("stub") }
func (k *StateKey[T]) Load(ctx context.Context) (T, error)                          { panic("stub") }
func (k *StateKey[T]) Update(ctx context.Context, f func(T) T) (value T, err error) { panic("stub") }
