package declared

import (
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/remote"
)

// Remote makes the model of an agent that runs elsewhere; name is the agent's. An error has its place
// in the file. Without getenv it is only looked at.
func Remote(d *config.Declaration, name string, getenv func(string) string) (*remote.Agent, error) {
	o := remote.Options{}
	if err := d.Decode(&o, getenv); err != nil {
		return nil, err
	}
	var err error
	o.Name = name
	if o.RoundTripper, err = credentialed(d, name, originOf(o.URL, orStandIn(getenv, o.URL)), getenv); err != nil {
		return nil, err
	}
	a, err := remote.New(o)
	if err != nil {
		return nil, d.Located(err, "")
	}
	return a, nil
}
