package filestore

import "github.com/holdfast-agents/holdfast/store"

// Watch implements [store.Notifier].
func (s *Store) Watch(key store.ThreadKey) (wake <-chan struct{}, stop func()) {
	return s.waiters.Watch(key)
}

// OnPost implements [store.Notifier].
func (s *Store) OnPost(f func(store.ThreadKey)) (stop func()) { return s.waiters.OnPost(f) }
