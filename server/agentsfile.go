package server

import (
	"errors"

	"github.com/holdfast-agents/holdfast/internal/config"
)

// FileSchema returns the JSON Schema of agents files. Editors complete and check a file by it;
// [Load] reads it by the same schema, and finds more.
func FileSchema() []byte { return config.Schema() }

// IsFileMistake reports whether err, from [Load] or [ValidateAgents], says what is
// wrong in the agents file. Then each of its lines begins with a place that editors can
// follow, "file:line:column: ", and should be printed without a prefix.
func IsFileMistake(err error) bool {
	var mistakes *config.Error
	return errors.As(err, &mistakes)
}
