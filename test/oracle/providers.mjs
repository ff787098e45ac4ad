// What each provider's model says: reasoning, text, parallel calls and usage, as the
// official client shows it and as the server has it.
import assert from "node:assert/strict";
import { agent, base, last, legacy, sameAsServer, say, test, version } from "./client.mjs";

const counted = { inputTokens: 100, outputTokens: 50, totalTokens: 150 };
const all = { ...counted, reasoningTokens: 20, cachedInputTokens: 60, cacheWriteInputTokens: 10 };
const { cacheWriteInputTokens, ...allButWritten } = all;

// The provider's name, its counts of one answer, and where it gives what it needs back.
const providers = {
  anthropic: { usage: all, reasoning: true },
  responses: { provider: "openai", usage: all, reasoning: true },
  gemini: { usage: allButWritten, reasoning: true, call: true },
  openai: { usage: counted, call: true },
};

function times(usage, n) {
  return Object.fromEntries(Object.entries(usage).map(([name, count]) => [name, count * n]));
}

for (const [name, { provider = name, usage, reasoning, call }] of Object.entries(providers)) {
  test(`${name} (client ${version})`, async () => {
    const a = agent(undefined, { url: `${base}/agents/${name}/runs` });
    const r = await say(a, "how much is it?");
    assert.equal(r.error, undefined);
    assert.equal(r.outcome.type, "success");
    const first = a.messages[0];
    const shown = a.messages.filter((m) => m.role !== "reasoning");
    assert.deepEqual(shown.map((m) => m.role), ["user", "assistant", "tool", "tool", "assistant"]);
    const thought = a.messages.find((m) => m.role === "reasoning");
    assert.equal(thought.content, "hm so");
    assert.equal(shown[1].content, "I count.");
    assert.deepEqual(shown[1].toolCalls.map((c) => JSON.parse(c.function.arguments).expression), ["1+1", "2+2"]);
    assert.equal(last(a).content, "It is 2 and 4.");
    if (reasoning) assert.ok(a.messages.some((m) => m.role === "reasoning" && m.encryptedValue), "what the provider needs back of its reasoning is not shown");
    if (call) assert.ok(shown[1].toolCalls[0].encryptedValue, "what the provider needs back of its call is not shown");
    await sameAsServer(a);

    const sum = [{ provider, model: "m1", ...times(usage, 2) }];
    const ended = r.events.find((e) => e.type === "RUN_FINISHED");
    if (!legacy) assert.deepEqual(ended.usage, sum);
    const asked = await fetch(`${base}/agents/${name}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ threadId: a.threadId, runId: ended.runId, messages: [first] }),
    });
    assert.deepEqual((await asked.json()).usage, sum);

    const again = await say(a, "thanks");
    assert.equal(again.error, undefined);
    await sameAsServer(a);
  });
}
