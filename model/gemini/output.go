package gemini

import (
	"maps"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// config returns the parameter generationConfig, in which the form of an answer is.
func (m *Model) config() map[string]any {
	config, _ := m.client.Params["generationConfig"].(map[string]any)
	return config
}

// older reports whether the model is of one of these generations.
func (m *Model) older(generations ...string) bool {
	for _, g := range generations {
		if strings.HasPrefix(m.client.Model, "gemini-"+g) {
			return true
		}
	}
	return false
}

// EnforcesOutput reports whether the API enforces the form of an answer. The API does not take a form from models
// before 2.5, nor, before the third generation, together with tools, nor for images.
func (m *Model) EnforcesOutput(req *holdfast.ModelRequest) bool {
	for _, own := range []string{"responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities"} {
		if _, set := m.config()[own]; set {
			return false
		}
	}
	return !m.older("1", "2.0") && (len(req.Tools) == 0 || !m.older("2"))
}

// formed writes the form of the answer into the parameter generationConfig.
func (m *Model) formed(o *holdfast.Output) map[string]any {
	config := maps.Clone(m.config())
	if config == nil {
		config = map[string]any{}
	}
	config["responseMimeType"], config["responseJsonSchema"] = "application/json", subset(o.Schema)
	return config
}

// Media returns which media the model takes in messages, and which it makes.
func (m *Model) Media() (takes, makes map[holdfast.PartType]bool) {
	takes = map[holdfast.PartType]bool{}
	if strings.HasPrefix(m.client.Model, "gemini-") && !strings.Contains(m.client.Model, "image") {
		for _, t := range []holdfast.PartType{holdfast.PartImage, holdfast.PartAudio, holdfast.PartVideo,
			holdfast.PartDocument} {
			takes[t] = true
		}
	}
	makes = map[holdfast.PartType]bool{holdfast.PartImage: strings.Contains(m.client.Model, "image")}
	if _, set := m.config()["responseModalities"]; set {
		delete(makes, holdfast.PartImage) // the parameters have the last word
	}
	return takes, makes
}
