package redisstore

import "github.com/holdfast-agents/holdfast/store"

// The Notifier role; watchers.go does it.

// Watch implements [store.Notifier].
func (s *Store) Watch(key store.ThreadKey) (<-chan struct{}, func()) {
	return s.watchers.watch(key)
}

// OnPost implements [store.Notifier].
func (s *Store) OnPost(f func(store.ThreadKey)) func() {
	return s.watchers.OnPost(f)
}
