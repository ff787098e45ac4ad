package command

import (
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/internal/settings"
)

// keyCommand makes an API key.
func keyCommand(args []string, stdout, stderr io.Writer) error {
	var who holdfast.Principal
	var roles, agents, expires string
	flags := flag.NewFlagSet("holdfast key", flag.ContinueOnError)
	flags.StringVar(&who.Tenant, "tenant", "", "the tenant whose data the key opens; tenants see nothing of each other")
	flags.StringVar(&who.User, "user", "", "the key's owner within the tenant")
	flags.StringVar(&roles, "roles", "user",
		"what the key may be used for, separated by commas: read, user, approver, tenant_operator, "+
			"server_operator, service")
	flags.StringVar(&agents, "agents", "", "the agents that the key may be used with, separated by commas; default all")
	flags.StringVar(&expires, "expires", "",
		"when the key ends: a time like 2026-12-31T12:00:00Z, or how long from now, like 2160h; default never")
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	var err error
	if who.Rights, err = rightsOf(roles, agents, expires, time.Now()); err != nil {
		return err
	}
	key, entry, err := apikey.NewFor(rand.Reader, who)
	if err != nil {
		return fmt.Errorf("%w: use --tenant TENANT --user USER", err)
	}
	fmt.Fprintf(stdout, `The key, shown only now. Give it to its user, who sends it as "Authorization: Bearer KEY":

  %s

Add this entry to HOLDFAST_API_KEYS (commas between entries) and restart the server, or as a line to the file that
it names with @ and send the server a SIGHUP:

  %s
`, key, entry)
	return nil
}

// rightsOf reads the flags of the rights of a key.
func rightsOf(roles, agents, expires string, now time.Time) (*access.Rights, error) {
	r := &access.Rights{}
	for _, name := range settings.Split(roles) {
		role, err := access.ParseRole(name)
		if err != nil {
			return nil, fmt.Errorf("--roles=%s: %w", roles, err)
		}
		r.Roles = append(r.Roles, role)
	}
	r.Agents = settings.Split(agents)
	if expires == "" {
		return r, nil
	}
	if d, err := time.ParseDuration(expires); err == nil && d > 0 {
		r.Expires = now.Add(d)
		return r, nil
	}
	var err error
	if r.Expires, err = time.Parse(time.RFC3339, expires); err != nil || !r.Expires.After(now) {
		return nil, fmt.Errorf("--expires=%s is no time to come: write it like 2026-12-31T12:00:00Z, or "+
			"2160h for 90 days from now", expires)
	}
	return r, nil
}
