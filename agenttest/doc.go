// Package agenttest runs a middleware, or a whole agent, alone in a test: with the
// server's own wiring, a scripted model, a store in memory and no network.
//
// # A hook is a function
//
// What a hook decides can be tested as the function that it is. [Context] makes the
// context that it needs, with states, a ledger, and a record of its notices:
//
//	ctx, run := agenttest.Context(t, agenttest.WithState(key, Quota{Used: 2}))
//	b := holdfast.NewBatch(&holdfast.Iteration{}, []holdfast.ToolCall{{Name: "lookup"}})
//	err := quota.Batch(ctx, b)
//	denied, _ := b.Decided(0)
//
// # A run
//
// [New] starts a server with one agent. Its model says one [Turn] after the other:
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
// really started, and the questions to a person, which [Harness.Answer],
// [Harness.AnswerAll] and [Harness.Decline] settle. A script that has no turn left
// ends the test.
//
// # What survives
//
// [Harness.Restart] kills the process and starts another one on the same store, and
// [State] is what the newest checkpoint holds. What a middleware keeps in a variable
// is lost in production, so give the next process a new one:
//
//	h.Restart(newQuota(options))
//	if agenttest.State(h, key).Used != 2 { … }
//
// A process dies in the middle of something when a hook, a tool or a turn of the
// model calls [Harness.Crash]. The result is [Cut] then; after a restart
// [Harness.Resume] reads on where the stream broke off. Another deployment is a
// restart with other middleware: one with a newer version of a state shows that its
// migration works.
//
// # Time
//
// Everything works in a bubble of testing/synctest, where timeouts and retries take
// no time, a crash is at the same point each time, and the test also fails if a
// goroutine is left behind.
//
// Package agenttest/storetest tests a store.
package agenttest
