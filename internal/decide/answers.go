package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// The answers in a resume: which open questions they answer, whether they were given before,
// whether they come in time, and whether they are what the questions ask for.

// Violation is what is wrong with one answer.
type Violation struct {
	InterruptID string `json:"interruptId"` // of the question
	Message     string `json:"message"`     // what is wrong, with the place in the payload
}

// answerCheck is a check of an answer, or of a part of it.
type answerCheck struct {
	Check
	interrupt string
	part      string // before what is wrong
}

// checksOf returns the checks of answers: against the schemas of their questions and, of
// edited arguments, against those of their tools.
func checksOf(s Situation, answers []agui.ResumeEntry) (all []answerCheck) {
	for _, a := range answers {
		if a.Status == agui.ResumeCancelled {
			continue
		}
		i := slices.IndexFunc(s.Interrupts, func(i agui.Interrupt) bool { return i.ID == a.InterruptID })
		payload := PayloadOf(a, &s.Interrupts[i])
		all = append(all, answerCheck{
			Check{fmt.Sprintf("the question %q", a.InterruptID), closed(&s.Interrupts[i]), payload},
			a.InterruptID,
			"",
		})
		if edited := EditedArguments(payload, &s.Interrupts[i]); edited != nil {
			p := s.Parameters[a.InterruptID]
			all = append(all, answerCheck{Check{fmt.Sprintf("the tool %q", p.Tool), p.Schema, edited}, a.InterruptID,
				"editedArgs: "})
		}
	}
	return all
}

// violationsOf lists everything that is wrong with the answers, and the checks that were not
// made yet.
func violationsOf(s Situation, v Verdicts, answers []agui.ResumeEntry) (all []Violation, open []Check) {
	for _, c := range checksOf(s, answers) {
		texts, made := v.Of(c.Check)
		if !made {
			open = append(open, c.Check)
		}
		for _, text := range texts {
			all = append(all, Violation{c.interrupt, c.part + text})
		}
	}
	return all, open
}

// closed returns a question's schema; that of an approval without room for members that it
// does not name, as a misspelt "editedArgs" must not let a call run unchanged. Questions do
// not say so themselves: assistant-ui shows no buttons for a schema that forbids anything.
func closed(question *agui.Interrupt) json.RawMessage {
	text := question.ResponseSchema
	if question.Reason != holdfast.ReasonToolCall {
		return text
	}
	var members map[string]json.RawMessage
	var named struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(text, &named) != nil {
		return text
	}
	if _, said := members["additionalProperties"]; said || named.Properties["approved"] == nil {
		return text
	}
	members["additionalProperties"] = json.RawMessage("false")
	strict, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return strict
}

// PayloadOf returns what an answer says. The approval of a call was once said with "allow",
// which still counts as "approved".
func PayloadOf(a agui.ResumeEntry, question *agui.Interrupt) json.RawMessage {
	if question.Reason != holdfast.ReasonToolCall {
		return a.Payload
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(a.Payload, &members) != nil {
		return a.Payload
	}
	allow, old := members["allow"]
	if _, said := members["approved"]; said || !old {
		return a.Payload
	}
	members["approved"] = allow
	delete(members, "allow")
	renamed, err := json.Marshal(members)
	if err != nil {
		return a.Payload
	}
	return renamed
}

// EditedArguments returns the arguments that an approval wants a call to be made with
// instead of its own; nil if there are none, or if the question is not about a call.
func EditedArguments(payload json.RawMessage, question *agui.Interrupt) json.RawMessage {
	var said struct {
		Approved   bool            `json:"approved"`
		EditedArgs json.RawMessage `json:"editedArgs"`
	}
	if question.Reason != holdfast.ReasonToolCall || question.ToolCallID == "" ||
		json.Unmarshal(payload, &said) != nil || !said.Approved {
		return nil
	}
	if string(said.EditedArgs) == "null" {
		return nil
	}
	return said.EditedArgs
}

// ResumeRun returns the id of a run that resumes under the id of an earlier one. It is
// derived from the thread and the answered questions, so that a request that is sent again
// finds the run.
func ResumeRun(thread string, resume []agui.ResumeEntry) string {
	ids := make([]string, len(resume))
	for i, r := range resume {
		ids[i] = r.InterruptID
	}
	slices.Sort(ids)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", thread, ids))
	return "run-" + hex.EncodeToString(sum[:12])
}

// answersOpen reports whether an entry answers an open question.
func answersOpen(s Situation, resume []agui.ResumeEntry) bool {
	answers, _ := coverage(s, resume)
	return s.Status == threads.StatusInterrupted && len(answers) > 0
}

// AnswerHash returns a hash by which an answer that is sent again is recognized.
func AnswerHash(r agui.ResumeEntry) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", r.InterruptID, r.Status, r.Payload))
	return hex.EncodeToString(sum[:8])
}

// coverage returns the entries that answer open interrupts, and whether every
// open interrupt has one.
func coverage(s Situation, resume []agui.ResumeEntry) (answers []agui.ResumeEntry, all bool) {
	all = true
	for _, i := range s.Interrupts {
		found := false
		for _, r := range resume {
			if r.InterruptID == i.ID {
				answers, found = append(answers, r), true
				break
			}
		}
		all = all && found
	}
	return answers, all
}

// answeredBefore reports whether every entry repeats an answer that was given before.
func answeredBefore(s Situation, resume []agui.ResumeEntry) bool {
	for _, r := range resume {
		if s.Answers[r.InterruptID] != AnswerHash(r) {
			return false
		}
	}
	return true
}

// unknownIn returns the ids of the entries that are of no question of the thread: none that is
// open, and none that was answered before.
func unknownIn(s Situation, resume []agui.ResumeEntry) (ids []string) {
	for _, r := range resume {
		_, known := s.Answers[r.InterruptID]
		open := slices.ContainsFunc(s.Interrupts, func(i agui.Interrupt) bool { return i.ID == r.InterruptID })
		if !known && !open {
			ids = append(ids, r.InterruptID)
		}
	}
	return ids
}

// unknownOrSame reports whether no entry contradicts an answer that was given before.
func unknownOrSame(s Situation, resume []agui.ResumeEntry) bool {
	for _, r := range resume {
		if given, known := s.Answers[r.InterruptID]; known && given != AnswerHash(r) {
			return false
		}
	}
	return true
}

// resolvesExpired reports whether an expired interrupt gets an answer other than
// "cancelled".
func resolvesExpired(s Situation, answers []agui.ResumeEntry, now time.Time) bool {
	for _, i := range s.Interrupts {
		if !expired(i, now) {
			continue
		}
		for _, a := range answers {
			if a.InterruptID == i.ID && a.Status != agui.ResumeCancelled {
				return true
			}
		}
	}
	return false
}

// expired reports whether the interrupt has a time limit that has passed.
func expired(i agui.Interrupt, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, i.ExpiresAt)
	return err == nil && now.After(at)
}
