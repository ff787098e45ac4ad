package scripted

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// Answers that are not just text: an image, and JSON in a form.

// EnforcesOutput reports whether the form of an answer is enforced.
func (m *Model) EnforcesOutput(*holdfast.ModelRequest) bool { return true }

// Media returns which media the model takes in messages, and which it makes.
func (m *Model) Media() (takes, makes map[holdfast.PartType]bool) {
	return map[holdfast.PartType]bool{
			holdfast.PartImage:    false,
			holdfast.PartAudio:    false,
			holdfast.PartVideo:    false,
			holdfast.PartDocument: false,
		},
		map[holdfast.PartType]bool{
			holdfast.PartImage: true,
			holdfast.PartAudio: false,
		}
}

// formed gives the text of an answer the form that is asked for, as well as a script can:
// each member that must be a text has it, and the others have a value of their type.
func formed(a answer, form *holdfast.Output) answer {
	if form == nil || a.free || len(a.calls) > 0 || a.finish != holdfast.FinishStop {
		return a
	}
	var s struct {
		Properties map[string]struct {
			Type string            `json:"type"`
			Enum []json.RawMessage `json:"enum"`
		} `json:"properties"`
	}
	if json.Unmarshal(form.Schema, &s) != nil {
		return a
	}
	object := map[string]any{}
	for name, p := range s.Properties {
		object[name] = map[string]any{
			"string":  a.text,
			"integer": count(a.text),
			"number":  count(a.text),
			"boolean": true,
			"array":   []any{},
			"object":  map[string]any{},
		}[p.Type]
		if len(p.Enum) > 0 {
			object[name] = p.Enum[0]
		}
	}
	b, err := json.Marshal(object)
	if err != nil {
		return a
	}
	a.text = string(b)
	return a
}

func misfit(s situation, _ []string) answer {
	if s.req.Output == nil {
		return say("My answers need no form here.")
	}
	tail := s.req.Messages[len(s.req.History()):]
	if slices.ContainsFunc(tail, func(m holdfast.Message) bool { return m.Role == holdfast.RoleAssistant }) {
		return say("This is the form that you asked for.") // the answer before did not fit
	}
	a := say("This is not the form that you asked for.")
	a.free = true
	return a
}

// The size of the image, in pixels.
const width, height = 320, 180

func paint(situation, []string) answer {
	sea := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{
		color.RGBA{
			0xf3,
			0xb4,
			0x6b,
			0xff,
		},
		color.RGBA{0xe0, 0x86, 0x5a, 0xff},
		color.RGBA{0x2f, 0x4b, 0x7c, 0xff},
		color.RGBA{0x1c, 0x2f, 0x55, 0xff},
		color.RGBA{0xff, 0xf1, 0xcf, 0xff},
	})
	for y := range height {
		for x := range width {
			sun := (x-width/2)*(x-width/2)+(y-height/2)*(y-height/2) < 40*40
			shade := uint8(y * 4 / height)
			if sun && y < height/2 {
				shade = 4
			}
			sea.SetColorIndex(x, y, shade)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, sea); err != nil {
		return say("I could not paint: %v", err)
	}
	a := say("The sea in the evening, in five colors:")
	a.media = []*holdfast.Part{{Type: holdfast.PartImage, Source: &holdfast.Source{
		Type: holdfast.SourceData, MIMEType: "image/png", Value: base64.StdEncoding.EncodeToString(b.Bytes()),
	}}}
	return a
}
