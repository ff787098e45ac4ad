package http

import (
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// postBackup is POST /maintenance/backup. Only operators may ask for it, because it writes
// to the server's disk, and the copy has the threads of everybody. They are told what
// went wrong, in full.
func (a *upkeepAPI) postBackup(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	operator, err := a.operatorOf(r)
	if err != nil {
		return err
	}
	if a.backup == nil {
		return holdfast.Errorf(codes.NotFound, "This server's store cannot be copied through the server.").
			WithHint("Redis is backed up with its own means.")
	}
	var in struct {
		Dir string `json:"dir"`
	}
	if err := a.bodies.readObject(w, r, &in, "dir"); err != nil {
		return err
	}
	if !filepath.IsAbs(in.Dir) {
		return invalid(
			"dir",
			"dir must be an absolute path.",
			"Name a directory on the server's machine that does not exist yet.",
		)
	}
	err = backupError(in.Dir, a.backup(r.Context(), in.Dir))
	if a.audit != nil {
		a.audit(r.Context(), operator, "backup", err)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"dir": in.Dir})
	return nil
}

// backupError returns the error as the operator gets it, and as the log has it.
func backupError(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return invalid(
			"dir",
			dir+" exists.",
			"A backup is a new directory: name one that does not exist yet.",
		).Wrap(err)
	}
	return holdfast.Errorf(codes.StoreUnavailable, "The backup was not made: %v", err).Wrap(err)
}

// operatorOf returns who the operator is that has sent the request.
func (a *upkeepAPI) operatorOf(r *http.Request) (who string, err error) {
	if a.operator != nil {
		who, err = a.operator(r)
	}
	if err == nil && who == "" {
		err = holdfast.Errorf(codes.NotFound, "Only operators of this server may do this.").
			WithHint("Run holdfast backup on the server's machine, as a user who can read the store.")
	}
	return who, err
}
