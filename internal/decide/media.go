package decide

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Media that clients send by reference: a URL, or the id of a file at the model's
// provider. The provider fetches a URL, which for a model server of one's own means from
// inside the operator's network, and it finds a file in the operator's account. So the
// agent says which references it takes, and a URL must not name an address that only this
// network or this machine can reach. Names are not resolved: what they stand for can
// change between here and the provider.

// refusal is why a reference is not taken, and what the client can send instead.
type refusal struct{ why, instead string }

var (
	noURL    = &refusal{"by URL, and this agent takes none", `Send the content itself: a source of type "data".`}
	notHTTPS = &refusal{
		"by a URL that is not https",
		`Send an https URL, or the content itself: a source of type "data". Operators allow other URLs ` +
			`with media: {urls: any}.`,
	}
	private = &refusal{
		"by an address or a name of a private network or of the server itself",
		`Send a URL that everybody can reach, or the content itself: a source of type "data".`,
	}
	malformed = &refusal{
		"by a URL that cannot be read",
		`Send an absolute URL without user name, backslashes and characters outside of ASCII, or the content itself: ` +
			`a source of type "data".`,
	}
	noFile = &refusal{
		"by the id of a file, and this agent takes none",
		`Send the content itself: a source of type "data". Operators allow file ids with media: {files: true}.`,
	}
)

// checkMedia refuses a message with a reference that the agent does not take. The error names it by the id.
func checkMedia(m *agui.Message, id string, p *holdfast.ClientPolicy) *holdfast.Error {
	if len(m.Content) == 0 || m.Content[0] != '[' {
		return nil
	}
	d, err := m.Domain()
	if err != nil {
		return nil // the decoder has refused it
	}
	for i := range d.Parts {
		if r := refuse(d.Parts[i].Source, p); r != nil {
			return errMedia(id, i, d.Parts[i].Type, r)
		}
	}
	return nil
}

// Withhold returns a message as the model may be shown it: parts that the agent does not
// take are replaced by a note. They are in threads that another agent, or this one with
// another configuration, has taken them into.
func Withhold(m holdfast.Message, p *holdfast.ClientPolicy) holdfast.Message {
	own := false // m.Parts is this function's own
	for i := range m.Parts {
		r := refuse(m.Parts[i].Source, p)
		if r == nil {
			continue
		}
		if !own {
			m.Parts, own = append([]holdfast.Part(nil), m.Parts...), true
		}
		m.Parts[i] = holdfast.Part{
			Type: holdfast.PartText,
			ID:   m.Parts[i].ID,
			Text: "[This " + string(m.Parts[i].Type) + " was left out: it was sent " + r.why + ".]",
		}
	}
	return m
}

// refuse returns why a source is not taken; nil if it is.
func refuse(s *holdfast.Source, p *holdfast.ClientPolicy) *refusal {
	switch {
	case s == nil || s.Type == holdfast.SourceData:
		return nil
	case s.Type == holdfast.SourceURL:
		return refuseURL(s.Value, cmp.Or(p.MediaURLs, thread.MediaHTTPS))
	case p.MediaFiles:
		return nil
	}
	return noFile
}

// refuseURL returns why a URL is not taken; nil if it is. A data: URL holds the content
// itself.
func refuseURL(text, allowed string) *refusal {
	if len(text) >= 5 && strings.EqualFold(text[:5], "data:") {
		return nil
	}
	if allowed == thread.MediaNone {
		return noURL
	}
	// Readers of URLs disagree about these, so the provider might find another host in it.
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return malformed
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.User != nil {
		return malformed
	}
	web := u.Scheme == "https" || u.Scheme == "http"
	switch {
	case u.Scheme != "https" && allowed != thread.MediaAny:
		return notHTTPS
	case web && u.Hostname() == "":
		return malformed
	case web && netguard.IsPrivate(u.Hostname()):
		return private
	case netguard.IsPrivateAddress(u.Hostname()): // gs://bucket has no host
		return private
	}
	return nil
}
