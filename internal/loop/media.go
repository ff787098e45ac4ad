package loop

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Images and other media that a model makes. Each is an activity: a message of its own after
// the answer. It is shown and stored in the commit of the answer, and never before: then
// neither a retry nor a takeover has to take it back, which clients of AG-UI do not do with
// activities, and the log can refer to the message instead of having it a second time.

// mediaBuilder is one of them.
type mediaBuilder struct {
	id   string
	at   int // how many bytes of text came before it
	part holdfast.Part
}

// mediaTypes match what a data: URL can say without escapes.
var mediaTypes = regexp.MustCompile(`^[a-z]+/[A-Za-z0-9][A-Za-z0-9.+-]{0,126}$`)

// maxMediaURL bounds the URL of media, in bytes.
const maxMediaURL = 4 << 10

// takeMedia keeps what the model has made until the answer is complete. Media that cannot be
// shown are left out.
func (a *completion) takeMedia(p *holdfast.Part) {
	if why := a.unfit(p); why != "" {
		kind := string(p.Type)
		if p.Source != nil && mediaTypes.MatchString(p.Source.MIMEType) {
			kind += " of type " + p.Source.MIMEType
		}
		if kind += ": " + why; !slices.Contains(a.left, kind) {
			a.left = append(a.left, kind)
		}
		return
	}
	a.appear()
	a.mediaBytes += len(p.Source.Value)
	a.media = append(a.media, mediaBuilder{id: a.r.host.Config.NewID("msg"), at: len(a.text), part: *p})
}

// unfit says why media cannot be shown; "" if it can.
func (a *completion) unfit(p *holdfast.Part) string {
	switch p.Type {
	case holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo, holdfast.PartDocument:
	default:
		return "it is not media"
	}
	if p.Source == nil || p.Source.Value == "" {
		return "it has no content"
	}
	limit := a.r.agent.MaxMedia
	switch s := p.Source; {
	case limit > 0 && a.mediaBytes+len(s.Value) > limit:
		return "it is larger than the agent's maxMedia"
	case s.Type == holdfast.SourceURL && isWebURL(s.Value):
	case s.Type != holdfast.SourceData:
		return "its source cannot be shown"
	case !mediaTypes.MatchString(s.MIMEType):
		return "its media type cannot be shown"
	case !isBase64(s.Value):
		return "it is not base64"
	}
	return ""
}

// isWebURL reports whether a page may show what is at a URL.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && len(text) <= maxMediaURL
}

// isBase64 decodes without keeping what it decodes.
func isBase64(text string) bool {
	const piece = 4 << 10 // of whole groups of four
	var buf [piece]byte
	for len(text) > piece {
		if strings.Contains(text[:piece], "=") {
			return false
		}
		if _, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(text[:piece])); err != nil {
			return false
		}
		text = text[piece:]
	}
	_, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(text))
	return err == nil
}

// activities returns the messages of what the model has made.
func (a *completion) activities() []agui.Message {
	out := make([]agui.Message, len(a.media))
	for i := range a.media {
		m := &a.media[i]
		out[i] = thread.NewMedia(m.id, a.message, m.at, &m.part)
	}
	return out
}

// shows returns the events that show the activities among the messages of an answer, and the
// notice of what was left out.
func (a *completion) shows(answer []agui.Message) []agui.Event {
	var events []agui.Event
	for i := range answer {
		if m := &answer[i]; m.Role == string(holdfast.RoleActivity) {
			base := a.base()
			base.Metadata = m.Metadata
			events = append(events, agui.ActivitySnapshot{Base: base, MessageID: m.ID, ActivityType: m.ActivityType,
				Content: m.Content})
		}
	}
	if len(a.left) > 0 {
		a.r.log.Warn("a part of a model's answer was left out",
			"thread", a.r.key.Thread, "run", a.r.rec.ID, "iteration", a.r.st.Iteration, "content", a.left)
		events = append(events, agui.Custom{
			Base:  a.base(),
			Name:  "holdfast.output_left_out",
			Value: thread.MustJSON(map[string]any{"content": a.left}),
		})
	}
	return events
}
