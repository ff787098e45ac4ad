// An agent whose first model breaks off in the middle of a call, each time that it is asked.
import assert from "node:assert/strict";
import { agent, base, run, sameAsServer, say, test, version } from "./client.mjs";

test(`the second model answers (client ${version})`, async () => {
  const a = agent(undefined, { url: `${base}/agents/chained/runs` });
  const r = await say(a, "work 0 + work 1, ask 2, work 3");
  assert.equal(r.outcome.type, "interrupt");
  const told = r.events.filter((e) => e.type === "CUSTOM").map((e) => e.name);
  assert.deepEqual(told, ["holdfast.fallback"]);
  const { value } = r.events.find((e) => e.name === "holdfast.fallback");
  assert.deepEqual(value, { iteration: 0, attempt: 3, from: "test/first", to: "test/second" });
  const before = r.events.slice(0, r.events.findIndex((e) => e.name === "holdfast.fallback"));
  assert.equal(before.filter((e) => e.type === "TEXT_MESSAGE_START").length, 1, "half answers before the fallback");
  assert.ok(!JSON.stringify(a.messages).includes("half"), "something that broke off is still shown");
  await sameAsServer(a);
  const resume = r.outcome.interrupts.map((i) => ({ interruptId: i.id, status: "resolved", payload: "yes" }));
  const end = await run(a, { resume });
  assert.equal(end.error, undefined);
  assert.ok(!end.events.some((e) => e.name === "holdfast.fallback"), "the run has not kept its model");
  assert.deepEqual(a.messages.flatMap((m) => m.toolCalls ?? []).map((c) => c.function.name), ["work", "work", "ask", "work"]);
  await sameAsServer(a);
});
