// What a history window records, as the official client shows it.
import assert from "node:assert/strict";
import { agent, attached, base, frames, last, run, sameAsServer, say, serverHistory, test, version } from "./client.mjs";

for (const [name, type] of [["demo", "holdfast.summary"], ["cut", "holdfast.cut"]]) {
  const url = `${base}/agents/${name}/runs`;
  const activities = (a) => a.messages.filter((m) => m.role === "activity");

  test(`${type} (client ${version})`, async () => {
    const a = agent(undefined, { url });
    for (let i = 0; i < 8; i++) {
      const r = await say(a, `hello ${i}`);
      assert.equal(r.error, undefined);
      assert.equal(last(a).role, "assistant");
      await sameAsServer(a);
    }
    const shown = activities(a);
    assert.ok(shown.length >= 2, `${shown.length} activities`);
    for (const m of shown) {
      assert.equal(m.activityType, type);
      const ids = a.messages.map((m) => m.id);
      assert.equal(ids[0], m.content.from);
      assert.ok(ids.indexOf(m.content.to) < ids.indexOf(m.id), "the range is before it");
      assert.equal(a.messages.slice(0, ids.indexOf(m.content.to) + 1).filter((m) => m.role !== "activity").length, m.content.messages);
    }
    assert.ok(frames.some((f) => f.type === "ACTIVITY_SNAPSHOT" && f.activityType === type), "it was streamed");

    // A page that is opened now shows the same, and can go on.
    const fresh = attached(a.threadId);
    await fresh.runAgent();
    assert.deepEqual(JSON.parse(JSON.stringify(fresh.messages)), JSON.parse(JSON.stringify(a.messages)));
    const other = agent(a.threadId, { url, initialMessages: fresh.messages });
    const r = await say(other, "and on");
    assert.equal(r.error, undefined);
    await sameAsServer(other);

    // An answer that is made anew, by a client that shows less.
    const edited = agent(a.threadId, { url, initialMessages: other.messages.slice(0, 3) });
    const again = await run(edited, { forwardedProps: { holdfast: { branch: true } } });
    assert.equal(again.error, undefined);
    const stored = await serverHistory(a.threadId);
    assert.equal(stored.filter((m) => m.role === "activity").length, 0, "another branch has no summary");
    assert.deepEqual(edited.messages.filter((m) => m.role !== "activity").map((m) => m.id), stored.map((m) => m.id));
  });
}
