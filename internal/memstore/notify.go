package memstore

import "github.com/holdfast-agents/holdfast"

// Watch implements [holdfast.Notifier].
func (s *Store) Watch(key holdfast.ThreadKey) (<-chan struct{}, func()) {
	return s.waiters.Watch(key)
}

// OnPost implements [holdfast.Notifier].
func (s *Store) OnPost(f func(holdfast.ThreadKey)) func() {
	return s.waiters.OnPost(f)
}
