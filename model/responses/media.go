package responses

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// made passes on an image that the provider's own tool has made.
func (a *answer) made(w *wireItem) error {
	if err := a.flush(); err != nil {
		return err
	}
	a.media++
	part := modelhttp.Made("image/"+cmp.Or(w.Format, "png"), w.Result)
	part.EncryptedValue = a.model.client.Seal(0, 0)
	return a.Emit(holdfast.Delta{Media: part})
}

// again has the model shown an image of an earlier answer. The provider knows its own images
// only by their ids, and only if it stores them, so the model gets them back as a user's.
func (w *writer) again(p *holdfast.Part) {
	if w.client.Own(p.EncryptedValue) {
		if c := media(p); c != nil {
			w.shown = append(w.shown, c)
			return
		}
	}
	w.say(assistant, &content{Type: "output_text", Text: modelhttp.LeftOut(p)})
}

// showAgain writes the images of the answer that was written, after its results.
func (w *writer) showAgain() {
	if len(w.shown) > 0 {
		w.say(user, append(text(modelhttp.MadeText), w.shown...)...)
		w.shown = nil
	}
}

// builtin returns the provider's own tools among the parameters. The agent's tools are not
// set there.
func builtin(params map[string]any) ([]any, error) {
	list, is := params["tools"].([]any)
	if params["tools"] != nil && !is {
		return nil, errTools
	}
	for _, t := range list {
		tool, _ := t.(map[string]any)
		if kind, _ := tool["type"].(string); kind == "" || kind == "function" || kind == "custom" {
			return nil, errTools
		}
	}
	return list, nil
}

// errTools is what is wrong with the parameter tools.
var errTools = errors.New(`the parameter "tools" must be a list of tools that the provider runs itself, such as ` +
	`{type: image_generation}; the agent's own tools are not set there`)

// images are the types of images that the API takes.
var images = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// media writes an image or a document; nil if the API does not take it.
func media(p *holdfast.Part) *content {
	c := &content{Type: "input_file"}
	switch p.Type {
	case holdfast.PartImage:
		// Some servers refuse an image without detail.
		c.Type, c.Detail = "input_image", "auto"
	case holdfast.PartDocument:
	default:
		return nil
	}
	s := p.Source
	switch {
	case s == nil:
		return nil
	case s.Type == holdfast.SourceFile && s.Provider == provider:
		c.FileID = s.Value
	case s.Type == holdfast.SourceURL && p.Type == holdfast.PartImage:
		if s.MIMEType != "" && !slices.Contains(images, modelhttp.MIMEType(s)) {
			return nil
		}
		c.ImageURL = s.Value
	case s.Type == holdfast.SourceURL:
		c.FileURL = s.Value
	case s.Type == holdfast.SourceData:
		return c.with(s)
	default:
		return nil
	}
	return c
}

// with gives an image or a file the content that is in the message itself: images of some
// types, PDFs, and documents of text, which every model takes as a text.
func (c *content) with(s *holdfast.Source) *content {
	mime := modelhttp.MIMEType(s)
	data := "data:" + mime + ";base64," + s.Value
	switch {
	case c.Detail != "":
		if !slices.Contains(images, mime) {
			return nil
		}
		c.ImageURL = data
	case mime == "application/pdf":
		c.Filename, c.FileData = "document.pdf", data
	case strings.HasPrefix(mime, "text/") || mime == "application/json":
		plain, err := base64.StdEncoding.DecodeString(s.Value)
		if err != nil || len(plain) == 0 || !utf8.Valid(plain) {
			return nil
		}
		return &content{Type: "input_text", Text: string(plain)}
	default:
		return nil
	}
	return c
}
