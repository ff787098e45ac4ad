package budget

import "github.com/holdfast-agents/holdfast"

const (
	// bytesPerToken overestimates the number of tokens: English text has about four bytes
	// per token.
	bytesPerToken = 3
	// mediaTokens bounds the estimate for an image or a document, because models do not
	// count their bytes.
	mediaTokens = 4096
)

// estimate returns roughly how many tokens the model is sent.
func estimate(req *holdfast.ModelRequest) int64 {
	n := len(req.StateText())
	for _, text := range req.Instructions {
		n += len(text)
	}
	for _, text := range req.ClientInstructions {
		n += len(text)
	}
	for i := range req.Messages {
		n += messageBytes(&req.Messages[i])
	}
	for i := range req.Tools {
		n += len(req.Tools[i].Name) + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
	}
	for _, c := range req.Context {
		n += len(c.Description) + len(c.Value)
	}
	return int64((n + bytesPerToken - 1) / bytesPerToken)
}

func messageBytes(m *holdfast.Message) int {
	n := len(m.Text) + len(m.Name) + len(m.Error) + len(m.EncryptedValue)
	for i := range m.Calls {
		n += len(m.Calls[i].Name) + len(m.Calls[i].Arguments)
	}
	for _, p := range m.Parts {
		n += len(p.Text)
		if p.Source != nil && p.Source.Type == holdfast.SourceData {
			n += min(len(p.Source.Value), mediaTokens*bytesPerToken)
		} else if p.Source != nil {
			n += mediaTokens * bytesPerToken
		}
	}
	return n
}
