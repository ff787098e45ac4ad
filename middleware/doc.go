// Package middleware has the middleware that comes with Holdfast, written with the
// public API only: whatever is here could be written by anybody. Each is a function
// of its options, which panics if they cannot be; [Kinds] makes the same ones of a
// configuration file.
package middleware
