// Package holdfast is the vocabulary of Holdfast, a durable agent server that
// speaks AG-UI, and the place where it is extended.
//
// A frontend posts a run; the server runs the agent (model, parallel tools,
// repeat) and streams AG-UI events. Every iteration is checkpointed and every
// finished tool result is saved the moment it exists (results of pure tools, a few
// milliseconds later), so a run survives the death of the process that runs it.
//
// Terms, as used in code, JSON and documentation:
//
//   - thread: a conversation, a tree of messages with one head
//   - run: one execution on a thread, ending in success, interrupt, cancelled
//     or error
//   - iteration: one model call plus the tools it asked for, counted from 0
//   - record: one AG-UI event in a thread's log, numbered densely from 1
//   - head: where a thread stands; it moves in every commit
//   - checkpoint: a head that is listed
//   - pending write: a finished tool result, saved before the checkpoint that
//     will include it
//   - intent: "about to call this tool with these arguments"
//   - fence: who may write, compared inside every write
//
// The extension points are small: [Tool] and [NewTool], [Model], [Middleware]
// and [store.Store]. Package server puts them together; package agenttest helps you
// test them.
//
// This package imports only the standard library and one leaf package that turns
// Go types into JSON Schema.
package holdfast
