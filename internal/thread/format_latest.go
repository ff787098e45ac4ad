//go:build !nextformat

package thread

// Format is the newest data format that this version reads and writes.
const Format = latest

// FormatBefore is the data format of the version before.
const FormatBefore = latest - 1
