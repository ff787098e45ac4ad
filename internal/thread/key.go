package thread

// CallKey returns the call's idempotency key. It stays the same when the call runs
// again, in a resumed run or in a fork.
func CallKey(thread string, call *Call) string {
	if call.Thread != "" {
		thread = call.Thread
	}
	return thread + "/" + call.Run + "/" + call.ID
}
