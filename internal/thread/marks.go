package thread

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Marks of a call's result beside its content: whether it failed, and the texts of those that
// no tool has said; and the reasons of the server's own questions.

// ResultMark is what the metadata of a result's message says about the result.
type ResultMark struct {
	// Failed means that the result is an error's text.
	Failed bool `json:"failed,omitempty"`
	// NotRun means that nothing was started for the call.
	NotRun bool `json:"notRun,omitempty"`
	// Code is the error's code, such as [CodeUnknown]; empty if it has none.
	Code string `json:"code,omitempty"`
}

// The codes of results that the server itself gives calls which may have taken effect.
const (
	// CodeUnknown: nobody knows what became of the call.
	CodeUnknown = "outcome_unknown"
	// CodeNotDone: it was found out that the call has not taken effect.
	CodeNotDone = "not_done"
)

// MarkOf returns the mark of a result's message; the zero mark if it has none.
func MarkOf(m *agui.Message) ResultMark {
	var metadata struct {
		Holdfast ResultMark `json:"holdfast"`
	}
	if len(m.Metadata) == 0 || json.Unmarshal(m.Metadata, &metadata) != nil {
		return ResultMark{}
	}
	return metadata.Holdfast
}

// FailedMark returns the metadata of a failed result's message; code may be empty.
func FailedMark(notRun bool, code string) json.RawMessage {
	return MustJSON(map[string]ResultMark{"holdfast": {Failed: true, NotRun: notRun, Code: code}})
}

// The results of calls that did not run to their end. Models and people read them.
const (
	TextNotAnswered = "No result: the call was not answered."
	TextDeclined    = "No result: the person declined to answer."
	TextAbandoned   = "No result: the call was cut off before it finished, and was given up."
	TextCancelled   = "No result: the run was cancelled before the call finished."
	TextInDoubt     = "Outcome unknown: the server died while this call was running. It may have taken effect, and " +
		"it was not started again. Check before you repeat it."
	TextUnknown = "Outcome unknown: no answer came back from this call. It may have taken effect, and it was " +
		"not started again. Check before you repeat it."
	TextNotDone = "No result: no answer came back from this call, and it has not taken " +
		"effect. It can be made again."
	TextPanicked     = "%s failed because of a mistake in the tool itself. It may have taken effect in part."
	TextNotChosen    = "Not started: the request that this answers does not let the model call this tool."
	TextNobodyToAsk  = "Not started: a person would have to be asked about this call, and nobody can be asked here."
	TextOwnCancelled = "No result: the run was cancelled while the agent carried this call out. It may " +
		"still take effect there."
	TextOwnLost  = "No result: the agent was lost while it carried this call out. It can be made again."
	TextOwnAgain = "No result came back from this call, and a person wants it to be made again."
	TextCut      = "Not started: the answer was cut off in the middle of this call's arguments by the model's " +
		"length limit or a filter. Make a shorter call."
)

// The results of outside calls that nobody has finished.
const (
	TextExpired = "No result: the call was handed out, but no result came in time. The work may still have been done."
	TextGivenUp = "No result: the call was handed out, and was given up before a result came. The " +
		"work may still be done."
)

// RanToItsEnd reports whether a result's text is what the tool said, and not what the server
// wrote because the call was cut off.
func RanToItsEnd(text string) bool {
	switch text {
	case TextNotAnswered,
		TextDeclined,
		TextAbandoned,
		TextCancelled,
		TextInDoubt,
		TextUnknown,
		TextNotDone,
		TextExpired,
		TextGivenUp:
		return false
	}
	return true
}

// ReasonLogin is the reason of the question with which a tool has its user log in; see
// package credential.
const ReasonLogin = "holdfast:login_required"

// ReasonOutside is the reason of the question with which a contract says that its call is to
// be finished from outside.
const ReasonOutside = "holdfast:outside_call"
