package server

import (
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/declared"
	"github.com/holdfast-agents/holdfast/remote"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// Agents of the file that run elsewhere.

// remoteState is the size up to which such an agent is sent the shared state, in bytes.
const remoteState = 1 << 20

// checkRemote finds what is wrong with where an agent runs, without the environment. The agent is sent
// the shared state, unless the file says something else of it.
func checkRemote(a config.Agent, made *holdfast.Agent) error {
	if made.State == nil {
		made.State = &sharedstate.Options{}
	}
	if made.State.Show == "" {
		made.State.Show, made.State.MaxBytes = "all", remoteState
	}
	_, err := declared.Remote(a.Remote, a.Name, nil)
	return err
}

// remoteDeclaration is what the file says of such an agent besides where it is.
type remoteDeclaration struct {
	History string                     `json:"history,omitempty"`
	OnCut   string                     `json:"onCut,omitempty"`
	Effects map[string]holdfast.Effect `json:"effects,omitempty"`
	Timeout time.Duration              `json:"timeout,omitempty"`
}

func remoteDeclared(d *config.Declaration) *remoteDeclaration {
	var o remote.Options
	_ = d.Decode(&o, nil) // what is wrong with it is found when it is made
	return &remoteDeclaration{o.History, o.OnCut, o.Effects, o.Timeout}
}
