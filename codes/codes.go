// Package codes lists the codes of the errors that the server returns: clients see them in
// responses and in RUN_ERROR events, programs compare them with a [holdfast.Error]'s Code.
//
// [holdfast.Error]: https://pkg.go.dev/github.com/holdfast-agents/holdfast#Error
package codes

// The codes of the errors that the server itself returns.
const (
	// AgentNotFound: no agent of that name is configured.
	AgentNotFound = "agent_not_found"
	// BodyTimeout: the body did not arrive in time.
	BodyTimeout = "body_timeout"
	// BudgetExceeded: the tokens or the cost that a budget allows are used up.
	BudgetExceeded = "budget_exceeded"
	// CallAlreadyAnswered: the call has another result already.
	CallAlreadyAnswered = "call_already_answered"
	// CallClosed: the call was given up before its result came.
	CallClosed = "call_closed"
	// CallExpired: the call's result comes too late.
	CallExpired = "call_expired"
	// CallPending: the thread waits for the result of a call that is finished from outside.
	CallPending = "call_pending"
	// CheckpointConflict: the thread has changed since its ETag was read.
	CheckpointConflict = "checkpoint_conflict"
	// CheckpointInvalid: the stored state has a negative counter; it was left untouched.
	CheckpointInvalid = "checkpoint_invalid"
	// CheckpointStale: the history is not the one that the checkpoint was taken of.
	CheckpointStale = "checkpoint_stale"
	// CheckpointUnreadable: a stored value is damaged; it was left untouched.
	CheckpointUnreadable = "checkpoint_unreadable"
	// CircuitOpen: the circuit breaker has stopped identical calls.
	CircuitOpen = "circuit_open"
	// CutOff: the process that ran the run has died, and recovery is off.
	CutOff = "cut_off"
	// AuthUnavailable: the keys of the identity provider, with which tokens are checked,
	// cannot be fetched.
	AuthUnavailable = "auth_unavailable"
	// Forbidden: the caller's key or token does not allow this.
	Forbidden = "forbidden"
	// ForbiddenHost: the Host header does not name this server.
	ForbiddenHost = "forbidden_host"
	// ForbiddenOrigin: pages of that origin may not use this server.
	ForbiddenOrigin = "forbidden_origin"
	// HistoryDiverged: the messages sent do not continue the thread's history.
	HistoryDiverged = "history_diverged"
	// HistoryNotKept: only the latest checkpoint is kept.
	HistoryNotKept = "history_not_kept"
	// Internal: the server has made a mistake; its log has the cause.
	Internal = "internal"
	// InterruptAlreadyAnswered: the question has another answer already, or is not open.
	InterruptAlreadyAnswered = "interrupt_already_answered"
	// InterruptExpired: the question has expired and can only be cancelled.
	InterruptExpired = "interrupt_expired"
	// Interrupted: the thread waits for a person.
	Interrupted = "interrupted"
	// AnswersMissing: some of the open questions are answered, or questions that nobody has asked,
	// and all that are open have to be.
	AnswersMissing = "answers_missing"
	// InvalidAnswer: an answer is not what its question's schema asks for.
	InvalidAnswer = "invalid_answer"
	// InvalidCursor: what was sent as a cursor is none.
	InvalidCursor = "invalid_cursor"
	// InvalidInput: the request cannot be read or contradicts itself.
	InvalidInput = "invalid_input"
	// LimitExceeded: the tenant or the user has as many runs, streams, threads or bytes as
	// are allowed.
	LimitExceeded = "limit_exceeded"
	// MaxIterations: the run has used the iterations that it was granted.
	MaxIterations = "max_iterations"
	// MediaRefused: a message has an image or other media that the agent does not take.
	MediaRefused = "media_refused"
	// MethodNotAllowed: the route has no such method.
	MethodNotAllowed = "method_not_allowed"
	// MidExecution: the thread has unfinished work, to which messages cannot be added.
	MidExecution = "mid_execution"
	// ModelFailed: the model could not answer.
	ModelFailed = "model_failed"
	// NotFound: there is no such thread, run, checkpoint or message of the caller.
	NotFound = "not_found"
	// NotRecorded: a call has no recorded result, and no other call may run.
	NotRecorded = "not_recorded"
	// NothingToRun: there is neither a new message nor a history.
	NothingToRun = "nothing_to_run"
	// OutputCut: the answer was cut off before its JSON was complete.
	OutputCut = "output_cut"
	// OutputInvalid: the answer does not have the form that its agent's answers must have.
	OutputInvalid = "output_invalid"
	// PayloadTooLarge: the body is larger than the server takes.
	PayloadTooLarge = "payload_too_large"
	// RateLimited: a rate limit is reached.
	RateLimited = "rate_limited"
	// RecoveryGaveUp: the run was taken over too often without progress.
	RecoveryGaveUp = "recovery_gave_up"
	// RevisionGone: no server has the revision of the agent that the run is pinned to.
	RevisionGone = "revision_gone"
	// RunIDReused: the run id was used with other input.
	RunIDReused = "run_id_reused"
	// RunInProgress: a run is in progress on the thread.
	RunInProgress = "run_in_progress"
	// StoreUnavailable: the store does not respond.
	StoreUnavailable = "store_unavailable"
	// StateConflict: a change of the shared state does not go together with the state as it is.
	StateConflict = "state_conflict"
	// StateInvalid: a change of the shared state does not fit the schema of its agent.
	StateInvalid = "state_invalid"
	// StreamCut: the connection ends before the run does; the run goes on.
	StreamCut = "stream_cut"
	// NotAcceptable: no content type of the Accept header can be sent.
	NotAcceptable = "not_acceptable"
	// ThreadExists: there is a thread of that id already.
	ThreadExists = "thread_exists"
	// ThreadTooLarge: the thread takes more bytes than are allowed.
	ThreadTooLarge = "thread_too_large"
	// TooManyBodies: the requests that are being received take all the memory for them.
	TooManyBodies = "too_many_bodies"
	// TooManyErrors: too many iterations in a row have failed.
	TooManyErrors = "too_many_errors"
	// TooManyRuns: all runs that this server may run at a time are in use.
	TooManyRuns = "too_many_runs"
	// Unauthenticated: the API key or token is missing or wrong, or no longer valid.
	Unauthenticated = "unauthenticated"
	// ShuttingDown: the server starts nothing new.
	ShuttingDown = "shutting_down"
	// Starting: the server waits for what its agents need, like MCP servers.
	Starting = "starting"
	// UnknownToolCall: a tool message answers a call that no message makes.
	UnknownToolCall = "unknown_tool_call"
	// UnsupportedMediaType: the body is not application/json.
	UnsupportedMediaType = "unsupported_media_type"
	// VersionTooNew: a newer version has written the thread.
	VersionTooNew = "version_too_new"
	// MiddlewareFailed: a hook of a middleware has failed.
	MiddlewareFailed = "middleware_failed"
	// SchemaChanged: the middleware states differ from those of the checkpoint, and that is refused.
	SchemaChanged = "schema_changed"
	// StateMigration: a migration of a middleware state has failed.
	StateMigration = "state_migration_failed"
	// StateNotListed: a middleware state was used that no middleware of the agent lists.
	StateNotListed = "state_not_listed"
	// StateTooNew: a middleware state has a version that is not known here.
	StateTooNew = "state_too_new"
	// StateUnreadable: a middleware state cannot be decoded.
	StateUnreadable = "state_unreadable"
	// StateUnwritable: a middleware state cannot be encoded.
	StateUnwritable = "state_unwritable"
	// WrongAgent: the thread has unfinished work of another agent.
	WrongAgent = "wrong_agent"
)
