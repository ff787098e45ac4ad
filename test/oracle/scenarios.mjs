// What people do with the official client, against the real server.
import assert from "node:assert/strict";
import {
  agent, attached, base, cutNext, frames, last, legacy, rejects, run, sameAsServer, say, test, untilIdle, user, version,
} from "./client.mjs";

test(`text (client ${version})`, async () => {
  const a = agent();
  const r = await say(a, "hello there");
  assert.equal(r.error, undefined);
  assert.equal(r.outcome.type, "success");
  assert.equal(!!r.bare, legacy, "the older dialect ends bare");
  assert.equal(last(a).role, "assistant");
  assert.match(last(a).content, /hello there/);
  await sameAsServer(a);
  const second = await say(a, "and once more");
  assert.equal(second.error, undefined);
  assert.equal(a.messages.length, 4);
  await sameAsServer(a);
});

test("reasoning", async () => {
  const a = agent();
  await say(a, "think about durability");
  const roles = a.messages.map((m) => m.role);
  assert.deepEqual(roles, ["user", "reasoning", "assistant"]);
  assert.ok(a.messages[1].content.length > 0);
  await sameAsServer(a);
});

test("parallel tools over several iterations", async () => {
  const a = agent();
  const r = await say(a, "plan 3 steps");
  assert.equal(r.error, undefined);
  const calls = a.messages.flatMap((m) => m.toolCalls ?? []);
  const results = a.messages.filter((m) => m.role === "tool");
  assert.ok(calls.length >= 6, `${calls.length} calls`);
  assert.deepEqual(results.map((m) => m.toolCallId).sort(), calls.map((c) => c.id).sort());
  assert.equal(new Set(calls.map((c) => c.id)).size, calls.length, "call ids are unique in the thread");
  assert.ok(a.state.plan, "tools change the shared state");
  await sameAsServer(a);
});

test("activities that change, and steps", async () => {
  const a = agent();
  const from = frames.length;
  const items = ["wake up", "have breakfast", "go to work", "come home again", "have a late dinner", "sleep"];
  const r = await say(a, `use carry_out ${JSON.stringify({ title: "A day", items, seconds: 0.02 })}`);
  assert.equal(r.error, undefined);
  const shown = a.messages.filter((m) => m.role === "activity");
  assert.deepEqual(shown.map((m) => m.activityType), ["holdfast.plan", "holdfast.progress"]);
  assert.deepEqual(shown[0].content, { title: "A day", items: items.map((text) => ({ text, status: "done" })) });
  assert.deepEqual(shown[1].content, { title: "A day", done: 6, total: 6 });
  const seen = frames.slice(from);
  const count = (type) => seen.filter((f) => f.type === type).length;
  assert.ok(count("ACTIVITY_DELTA") >= 6, `${count("ACTIVITY_DELTA")} patches`);
  assert.deepEqual([count("STEP_STARTED"), count("STEP_FINISHED")], [6, 6]);
  const fresh = attached(a.threadId);
  await fresh.runAgent();
  await sameAsServer(fresh);
  // Live, the client puts the result of a call right behind the call, before what the call has shown.
  const byID = (list) => JSON.parse(JSON.stringify(list)).sort((x, y) => (x.id < y.id ? -1 : 1));
  assert.deepEqual(byID(fresh.messages), byID(a.messages));
});

test("frontend tool round trip", async () => {
  const a = agent();
  const tools = [{ name: "pick_color", description: "Lets the person pick a color.", parameters: { type: "object", properties: { hint: { type: "string" } } } }];
  const r = await say(a, 'use pick_color {"hint":"warm"}', { tools });
  assert.equal(r.error, undefined);
  const call = a.messages.flatMap((m) => m.toolCalls ?? [])[0];
  assert.equal(call.function.name, "pick_color");
  if (!legacy) assert.deepEqual(r.outcome.pendingToolCallIds, [call.id]);
  a.addMessage({ id: "picked-" + call.id, role: "tool", toolCallId: call.id, content: "orange" });
  const next = await run(a, { tools });
  assert.equal(next.error, undefined);
  assert.match(last(a).content, /orange/);
  await sameAsServer(a);
});

test("two frontend calls, answered one after the other", async () => {
  const a = agent();
  const tool = (name) => ({ name, description: "asks the page", parameters: { type: "object" } });
  const tools = [tool("left"), tool("right")];
  await say(a, "use left {} and right {}", { tools });
  const calls = a.messages.flatMap((m) => m.toolCalls ?? []);
  assert.equal(calls.length, 2);
  a.addMessage({ id: "r0-" + calls[0].id, role: "tool", toolCallId: calls[0].id, content: "L" });
  const some = await run(a, { tools });
  assert.equal(some.error, undefined);
  if (!legacy) assert.deepEqual(some.outcome.pendingToolCallIds, [calls[1].id]);
  a.addMessage({ id: "r1-" + calls[1].id, role: "tool", toolCallId: calls[1].id, content: "R" });
  const all = await run(a, { tools });
  assert.equal(all.error, undefined);
  assert.equal(last(a).role, "assistant");
  await sameAsServer(a);
});

test("interrupt and resume", async () => {
  const a = agent();
  const r = await say(a, "ask me which city I live in");
  assert.equal(r.outcome.type, "interrupt");
  const [open] = r.outcome.interrupts;
  const refused = await fetch(a.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ threadId: a.threadId, runId: "impatient", messages: [user("hello?")], ...(legacy ? {} : { protocolVersion: "1.0" }) }),
  });
  assert.equal(refused.status, 409);
  assert.equal((await refused.json()).error.code, "interrupted");
  const resume = [{ interruptId: open.id, status: "resolved", payload: { answer: "Vienna" } }];
  const done = await run(a, { resume });
  assert.equal(done.error, undefined);
  assert.equal(done.outcome.type, "success");
  assert.match(last(a).content, /Vienna/);
  await sameAsServer(a);
});

test("an interrupt survives a page reload", async () => {
  const a = agent();
  const first = await say(a, "ask me for a name");
  const page = agent(a.threadId);
  const r = await run(page);
  assert.equal(r.outcome.type, "interrupt");
  assert.equal(r.outcome.interrupts[0].id, first.outcome.interrupts[0].id);
  if (!legacy) assert.equal(page.pendingInterrupts.length, 1);
  const done = await run(page, { resume: [{ interruptId: r.outcome.interrupts[0].id, status: "cancelled" }] });
  assert.equal(done.outcome.type, "success");
  await sameAsServer(page);
});

test("a call that is finished from outside", async () => {
  const a = agent();
  const r = await say(a, 'use request_approval {"amount": 1}');
  assert.equal(r.error, undefined);
  assert.equal(r.outcome.type, "success", "nobody is asked");
  assert.equal(a.pendingInterrupts?.length ?? 0, 0);
  const [call] = a.messages.flatMap((m) => m.toolCalls ?? []);
  // A client that answers every call makes up no result.
  a.addMessage({ id: "forged-" + call.id, role: "tool", toolCallId: call.id, content: '{"approved":true}' });
  assert.equal((await run(a)).error, undefined);
  await sameAsServer(a);
  assert.equal(last(a).role, "assistant");
  const thread = `${base}/threads/${encodeURIComponent(a.threadId)}`;
  const open = (await (await fetch(thread)).json()).outsideCalls;
  assert.deepEqual(open.map((c) => c.toolCallId), [call.id]);
  const post = (body) => fetch(`${thread}/calls/${encodeURIComponent(call.id)}/result`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert.equal((await post({ result: { approved: false } })).status, 200);
  await untilIdle(a.threadId);
  assert.equal((await run(a)).error, undefined);
  assert.match(last(a).content, /approved/);
  await sameAsServer(a);
});

test("error mid-run and a next message after it", async () => {
  const a = agent();
  const r = await say(a, "fail");
  assert.equal(r.error.code, "model_failed");
  a.addMessage(user("hello again"));
  await rejects(run(a), (e) => /mid_execution/.test(JSON.stringify(e.payload ?? "") + e.message));
  const next = await run(a, { forwardedProps: { holdfast: { onUnfinished: "abandon" } } });
  assert.equal(next.error, undefined);
  assert.match(last(a).content, /hello again/);
  await sameAsServer(a);
});

test("a failing model is tried again without a trace of the failed tries", async () => {
  const a = agent();
  const r = await say(a, "flaky");
  assert.equal(r.error, undefined);
  assert.ok(r.events.some((e) => e.type === "CUSTOM" && e.name === "holdfast.retry"));
  assert.deepEqual(a.messages.map((m) => m.role), ["user", "assistant"]);
  await sameAsServer(a);
});

test("an image of the model, and the next message after it", async () => {
  const a = agent();
  const r = await say(a, "paint");
  assert.equal(r.error, undefined);
  const shown = a.messages.find((m) => m.role === "activity");
  assert.equal(shown.activityType, "holdfast.image");
  assert.match(shown.content.url, /^data:image\/png;base64,iVBOR/);
  await sameAsServer(a);
  const next = await say(a, "hello");
  assert.equal(next.error, undefined);
  assert.ok(!next.events.some((e) => e.type === "MESSAGES_SNAPSHOT"), "a client that sends no activities lacks nothing");
  await sameAsServer(a);
  const page = attached(a.threadId);
  await run(page);
  await sameAsServer(page);
});

test("an answer in a form is the result, after one that does not fit", async () => {
  for (const [said, again] of [["hello", false], ["misfit", true]]) {
    const a = agent(undefined, { url: `${base}/agents/formed/runs` });
    const r = await say(a, said);
    assert.equal(r.error, undefined);
    assert.equal(r.events.some((e) => e.type === "CUSTOM" && e.name === "holdfast.output_retry"), again);
    const { result } = r.events.at(-1);
    assert.deepEqual(result, JSON.parse(last(a).content));
    assert.deepEqual(Object.keys(result).sort(), ["mood", "text"]);
    assert.deepEqual(a.messages.map((m) => m.role), ["user", "assistant"]);
    await sameAsServer(a);
  }
});

test("a connection cut in mid-message, then a retry", async () => {
  const a = agent();
  a.addMessage(user("slow 40 words please"));
  cutNext(1500);
  await rejects(run(a));
  assert.equal(last(a).role, "assistant");
  const half = last(a).content;
  assert.ok(half.length > 0);
  const r = await run(a);
  assert.equal(r.error, undefined);
  assert.ok(last(a).content.length > half.length);
  assert.ok(last(a).content.startsWith(half.slice(0, 20)));
  await sameAsServer(a);
  assert.equal(a.messages.length, 2, "the retry attached to the same run");
});

test("attach in mid-run into a fresh client", async () => {
  const a = agent();
  a.addMessage(user("slow 40 words please"));
  cutNext(1200);
  await rejects(run(a));
  const page = attached(a.threadId);
  const r = await run(page);
  assert.equal(r.error, undefined);
  assert.equal(r.outcome.type, "success");
  await sameAsServer(page);
});

test("attach in the middle of parallel tools", async () => {
  const a = agent();
  a.addMessage(user("plan 4 steps"));
  cutNext(4000);
  await rejects(run(a));
  const page = attached(a.threadId);
  const r = await run(page);
  assert.equal(r.error, undefined);
  await sameAsServer(page);
  assert.ok(page.state.plan);
});

test("hydrate into a fresh client", async () => {
  const a = agent();
  await say(a, "plan 2 steps");
  const posted = agent(a.threadId);
  const r = await run(posted);
  assert.equal(r.error, undefined);
  await sameAsServer(posted);
  assert.deepEqual(posted.state, a.state);
  const got = attached(a.threadId);
  await run(got);
  await sameAsServer(got);
  assert.deepEqual(got.state, a.state);
});

test("cancel keeps what was read", async () => {
  const a = agent();
  a.addMessage(user("slow 60 words please"));
  const running = run(a, { runId: "cancel-me-" + a.threadId });
  while (!(last(a).role === "assistant" && last(a).content?.length > 10)) await new Promise((r) => setTimeout(r, 10));
  const res = await fetch(a.url.replace("/runs", `/threads/${a.threadId}/runs/cancel-me-${a.threadId}/cancel`), { method: "POST" });
  assert.equal(res.status, 202);
  const r = await running;
  assert.equal(r.error, undefined);
  assert.equal(r.outcome.type, legacy ? "success" : "cancelled");
  await untilIdle(a.threadId);
  await sameAsServer(a);
  assert.equal(last(a).role, "assistant");
});

test("clients that send only what is new", async () => {
  const a = agent();
  await say(a, "first");
  const b = agent(a.threadId);
  const r = await say(b, "second");
  assert.equal(r.error, undefined);
  assert.equal(b.messages.length, 4, "the run begins with what the client lacks");
  await sameAsServer(b);
});

test("every frame was checked", async () => {
  assert.ok(frames.length > 300, `${frames.length} frames`);
});
