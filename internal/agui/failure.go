package agui

// The texts of RUN_ERROR. Its message is read by the person in front of the page, who can
// neither send requests nor change the server; what a developer or an operator does about the
// error is a hint in the event's metadata. Errors in JSON are for programs and keep the whole
// text.

import (
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
)

// Texts that several codes share.
const (
	wentWrong = "Something went wrong on the server. Try again. If it happens again, tell the " +
		"people who run this service."
	unreadable = "A part of this conversation cannot be read. Nothing was changed. Start a new conversation, or tell " +
		"the people who run this service."
	updated = "This service was updated and cannot continue this conversation yet. Nothing was changed. Tell the " +
		"people who run this service."
	busy = "This service is busy. Try again in a moment."
)

// people has what happened and what can be done about it, for each code of the server that
// can end a run or its stream. Those of [codes.ModelFailed] are in unanswered.
var people = map[string]string{
	codes.AgentNotFound: "The assistant of this conversation is not available any more. " +
		"Start a new conversation.",
	codes.AuthUnavailable: "Your sign-in cannot be checked at the moment. Try again in a moment.",
	codes.BudgetExceeded: "The budget for answers is used up. Try again when it is renewed, or ask the people " +
		"who run this service for more.",
	codes.CheckpointConflict: "This conversation was changed somewhere else at the same time. Try again.",
	codes.CheckpointInvalid:  unreadable,
	codes.CheckpointStale: "This conversation has changed since the answer was interrupted, so that answer " +
		"cannot continue. Send a new message.",
	codes.CheckpointUnreadable: unreadable,
	codes.CircuitOpen: "The assistant repeated the same step and was stopped. Try " +
		"again, or ask in other words.",
	codes.CutOff:        "The answer was interrupted. Finished work is kept. Try again to continue.",
	codes.Forbidden:     "You are not allowed to do this.",
	codes.Internal:      wentWrong,
	codes.LimitExceeded: "You have reached a limit of this service. Try again later.",
	codes.MaxIterations: "The assistant has taken as many steps as it may without finishing. Finished work is " +
		"kept. Try again to let it continue.",
	codes.MiddlewareFailed: wentWrong,
	codes.MidExecution: "This conversation went back to the middle of an answer. Try again " +
		"to continue from there.",
	codes.NotFound: "This conversation does not exist any more. Start a new one.",
	codes.NotRecorded: "The assistant was about to do something that it has not done before, and was " +
		"stopped. Nothing was done.",
	codes.OutputCut: "The answer became too long and was cut off. The part that was written is kept. Ask " +
		"for less, or try again.",
	codes.OutputInvalid: "The assistant could not put its answer into the form that is needed. Its answer is " +
		"kept. Try again, or ask in other words.",
	codes.RateLimited: "There were too many requests in a short time. Wait a little, then try again.",
	codes.RecoveryGaveUp: "The answer was interrupted several times and could not be finished. Finished work " +
		"is kept. Try again to continue.",
	codes.RevisionGone: "The answer was interrupted, and the assistant has changed since. Finished work is " +
		"kept. Try again to continue.",
	codes.SchemaChanged:    updated,
	codes.ShuttingDown:     "This service is restarting. Try again in a moment.",
	codes.StateMigration:   updated,
	codes.StateNotListed:   wentWrong,
	codes.StateTooNew:      updated,
	codes.StateUnreadable:  updated,
	codes.StateUnwritable:  wentWrong,
	codes.StoreUnavailable: "This service cannot reach its data at the moment. Try again in a moment.",
	codes.StreamCut: "The connection was interrupted; the answer is still being written. " +
		"Reload the page to see it.",
	codes.ThreadTooLarge: "This conversation has become too long to continue. Start a new one.",
	codes.TooManyErrors: "The assistant failed several times in a row and was stopped. Try " +
		"again, or ask in other words.",
	codes.TooManyRuns:     busy,
	codes.Unauthenticated: "Your sign-in is not valid any more. Sign in again.",
	codes.VersionTooNew: "This conversation was continued with a newer version of this service. Nothing was " +
		"changed. Try again later.",
}

// unanswered is why no model could answer, and what can be done about it, for each kind of
// failure. The model's own error is for developers.
var unanswered = map[failure.Kind]string{
	failure.Cut:        "The model did not finish its answer. Try again in a moment.",
	failure.Overloaded: "The model is overloaded or cannot be reached. Try again in a moment.",
	failure.Rate:       "The model is asked too often at the moment. Wait a little, then try again.",
	failure.Quota: "The model cannot answer because the account of this service is used up. Tell the " +
		"people who run this service.",
	failure.Auth: "The model cannot be asked because of a mistake in the settings of this service. " +
		"Tell the people who run it.",
	failure.TooLong: "This conversation is too long for the model. Start a new one, or send a shorter message.",
	failure.Refused: "The model declines to answer this. Change your last message, or start a new conversation.",
	failure.Invalid: "The model cannot take this conversation. Start a new one, or tell the " +
		"people who run this service.",
}

// PersonText returns what an error tells the person in front of the page. An error with a
// code that is not the server's speaks for itself, and so does that of a model without a
// kind.
func PersonText(e *holdfast.Error) string {
	if text, ok := people[e.Code]; ok {
		return text
	}
	var model *holdfast.ModelError
	if !errors.As(e.Err, &model) {
		return e.Message
	}
	if text, ok := unanswered[model.Kind]; ok {
		return text
	}
	if model.Retryable {
		return e.Message + " Try again in a moment."
	}
	return e.Message
}

// FullText returns an error's message and its hint as one text, for developers.
func FullText(e *holdfast.Error) string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " " + e.Hint
}

// NewRunError returns the event of an error.
func NewRunError(e *holdfast.Error) RunError {
	return StoredRunError(e.Code, PersonText(e), FullText(e))
}

// StoredRunError returns the event of an error whose texts were stored: the one for the
// person, and the full one.
func StoredRunError(code, person, full string) RunError {
	ev := RunError{Code: code, Message: person}
	if full != person {
		hint := appendString([]byte(`{"`+marksMember+`":{"hint":`), full)
		ev.Metadata = append(hint, "}}"...)
	}
	return ev
}

// FullText returns the whole text of the error: the hint if there is one, which then says
// more than the message.
func (e RunError) FullText() string {
	var metadata struct {
		Holdfast struct {
			Hint string `json:"hint"`
		} `json:"holdfast"`
	}
	if len(e.Metadata) == 0 || json.Unmarshal(e.Metadata, &metadata) != nil || metadata.Holdfast.Hint == "" {
		return e.Message
	}
	return metadata.Holdfast.Hint
}
