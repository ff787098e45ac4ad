//go:build !nextformat

package thread

// Format is the newest data format that this version reads and writes.
const Format = latest
