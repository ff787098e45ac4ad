package routine

import "sync"

// Each calls f with each number below n, in turn, at most atOnce of them at a time, and waits until all
// calls have returned.
func Each(n, atOnce int, f func(i int)) {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, atOnce)
	for i := range n {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			f(i)
		})
	}
}
