//go:build nextformat

package thread

// Format is the newest data format that this version reads and writes: an invented one, which
// comes after the latest.
const Format = latest + 1

// FormatBefore is the data format of the version before.
const FormatBefore = latest
