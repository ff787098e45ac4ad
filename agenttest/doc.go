// Package agenttest runs a middleware, or a whole agent, in a test: with the server's
// own wiring, a scripted model, an in-memory store and no network.
//
// # A hook is a function
//
// A hook is a function, so a test can call it and check what it decides. [Context]
// makes the context that it needs, with states, a ledger and a record of its notices:
//
//	ctx, run := agenttest.Context(t, agenttest.WithState(key, Quota{Used: 2}))
//	b := holdfast.NewBatch(&holdfast.Iteration{}, []holdfast.ToolCall{{Name: "lookup"}})
//	err := quota.Batch(ctx, b)
//	denied, _ := b.Decided(0)
//
// # A run
//
// [New] starts a server with one agent. Its model plays one [Turn] after another:
//
//	h := agenttest.New(t, agenttest.Config{
//		Model: agenttest.Say(
//			agenttest.Call("lookup", `{"term":"run"}`).And("lookup", `{"term":"fence"}`),
//			agenttest.Text("That is it."),
//		),
//		Tools:      []holdfast.Tool{lookup},
//		Middleware: []holdfast.Middleware{quota},
//	})
//	r := h.Run("What are these?")
//
// A [Result] has the outcome, the events, the history, the tool calls that were
// actually started, and the questions to a person, which [Harness.Answer],
// [Harness.AnswerAll] and [Harness.Decline] answer. If the script runs out of turns,
// the test fails.
//
// # What survives
//
// [Harness.Restart] kills the process and starts another one on the same store, and
// [State] returns what the newest checkpoint holds. In production, a restart loses
// what a middleware keeps in a variable, so give the next process a new one:
//
//	h.Restart(newQuota(options))
//	if agenttest.State(h, key).Used != 2 { … }
//
// To make a process die in the middle of something, call [Harness.Crash] in a hook, a
// tool or a turn of the model. The outcome is then [Cut]; after a restart,
// [Harness.Resume] continues the stream where it broke off. A restart with other
// middleware is a new deployment: with a newer version of a state, it shows that the
// migration works.
//
// # Tools of others
//
// The tools of an MCP server are given to New as they are to an agent, and are recorded and
// die with the process like its own. A test without the server puts a [Toolset] of tools of
// the same names in its place:
//
//	Toolsets: []holdfast.Toolset{files} // an *mcp.Server that the test has opened
//	Toolsets: []holdfast.Toolset{agenttest.Toolset{readFile}}
//
// A call that is finished from outside ends the run, and is in [Result.OutsideCalls].
// [Harness.Finish] sends its result, and returns what follows:
//
//	r := h.Run("May I buy a chair?")
//	r = h.Finish(r.OutsideCalls[0].ID, map[string]bool{"approved": true})
//
// [Config].FrontendTools are the tools of a page, and [Harness.Deliver] sends their results.
// For what a client can do besides, there is [Harness.Request]:
//
//	h.Request("POST", "/threads/t/fork", map[string]string{"threadId": "other"})
//
// # Time
//
// Everything works in a bubble of testing/synctest, where timeouts and retries take
// no time, a crash happens at the same point each time, and the test also fails if a
// goroutine is left behind.
//
// Package agenttest/storetest tests a store.
package agenttest
