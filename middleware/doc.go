// Package middleware has the middleware that comes with Holdfast. It uses only the
// public API, so anything here could have been written outside of the project. Each
// function takes options and panics if they are invalid.
//
// Middleware that needs more than a file or two has a package of its own: middleware/budget,
// middleware/permission and middleware/redaction. The package middleware/kinds lists all of
// it by the names that a configuration file uses.
package middleware
