// Package state has the signatures of the real one that the analysis looks at.
package state

import (
	"context"
	"encoding/json"
)

type Scope string

type Migration func(old json.RawMessage) (json.RawMessage, error)

type Spec[T any] struct {
	Name       string
	Version    int
	Scope      Scope
	Initial    func() T
	Migrations map[int]Migration
	Redact     func(T) any
	Validate   func(T) error
}

type States struct{}

type Key[T any] struct{ spec Spec[T] }

func Register[T any](spec Spec[T]) *Key[T] { return &Key[T]{spec} }

func (k *Key[T]) StateName() string                                            { panic("stub") }
func (k *Key[T]) Get(s *States) (T, error)                                     { panic("stub") }
func (k *Key[T]) With(s *States, value T) *States                              { panic("stub") }
func (k *Key[T]) Load(ctx context.Context) (T, error)                          { panic("stub") }
func (k *Key[T]) Update(ctx context.Context, f func(T) T) (value T, err error) { panic("stub") }
func (k *Key[T]) Reset(ctx context.Context) error                              { panic("stub") }
