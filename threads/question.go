package threads

import "time"

// QuestionList is a page of the open questions of a user's threads.
type QuestionList struct {
	// Questions are those of the threads that were last active first.
	Questions []Question `json:"questions"`
	// Next is what to ask for as before to get the next page; zero if there is none. A page
	// that has one may be short, or empty.
	Next time.Time `json:"next,omitzero"`
}

// Question is an open question of a thread.
type Question struct {
	// Thread is the thread that waits for the answer.
	Thread QuestionThread `json:"thread"`
	// Run is the run that ended with the question.
	Run string `json:"runId"`
	// Interrupt is the question.
	Interrupt Interrupt `json:"interrupt"`
	// AskedAt is when the thread last moved: with the question or, if that was later, with the
	// answer to another one that was asked with it, or a checkpoint that a person took.
	AskedAt time.Time `json:"askedAt"`
}

// QuestionThread is a thread as a list of questions names it.
type QuestionThread struct {
	// ID is the thread's id.
	ID string `json:"id"`
	// Title is the thread's title.
	Title string `json:"title,omitempty"`
	// Agent is the name of the agent that asks.
	Agent string `json:"agent"`
	// Hidden: a person has put the thread away.
	Hidden bool `json:"hidden,omitempty"`
}
