package middleware

// hintResume is the hint of errors that a person can overrule.
const hintResume = `To continue anyway, POST the same threadId with "messages": [] and a new runId.`
