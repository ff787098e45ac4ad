package loop

import (
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/prompt"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
)

// instruct adds to a request what the client of a run has to say to the model. changing
// means that its instructions have been different in other runs of the thread.
func instruct(req *holdfast.ModelRequest, rec *thread.Run, p *holdfast.ClientPolicy, changing bool) {
	if p.Context != thread.ShowNothing {
		req.Context = rec.Context
	}
	if p.Instructions == thread.ShowNothing {
		return
	}
	texts := thread.InstructionTexts(rec.Instructions)
	switch asUser := p.Instructions == thread.ShowAsUser; {
	case len(texts) == 0:
	case changing:
		last := holdfast.Message{
			ID:   hooks.ClientInstructions,
			Role: holdfast.RoleSystem,
			Text: strings.Join(texts, "\n\n"),
		}
		if asUser {
			last.Role, last.Text = holdfast.RoleUser, hooks.ClientText(hooks.ClientInstructions, last.Text)
		}
		req.Messages, req.Tail = append(req.Messages, last), req.Tail+1
	case asUser:
		req.ClientInstructions = texts
	default:
		req.Instructions = append(req.Instructions, texts...)
	}
}

// cutOf returns why a request does not repeat the whole one before.
func cutOf(sent *prompt.Sent) observe.PromptCut {
	switch {
	case sent.First:
		return observe.CutFirst
	case sent.Kept == prompt.Parts:
		return observe.CutNone
	case sent.Kept == prompt.Settings:
		return observe.CutModel
	case slices.Contains(observe.PromptCuts(), observe.PromptCut(sent.Cut)):
		return observe.PromptCut(sent.Cut) // the hook knows best
	case sent.Kept == prompt.Tools:
		return observe.CutTools
	case sent.Fewer:
		return observe.CutWindow
	case sent.Kept == prompt.Instructions:
		return observe.CutInstructions
	case sent.Branched:
		return observe.CutBranch
	}
	return observe.CutHistory
}
