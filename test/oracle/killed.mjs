// A server is killed while its model reasons, and another one takes the run over. This
// client watches at the other one; it says on its standard output when to kill.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { attached, last, run, sameAsServer, test, untilIdle, user, version } from "./client.mjs";

test(`killed while it reasons (client ${version})`, async () => {
  const threadId = randomUUID();
  const owner = await fetch(process.env.HOLDFAST_OWNER + "/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ threadId, runId: "r1", messages: [user("think about durability")] }),
  });
  assert.equal(owner.status, 200);
  owner.body.pipeTo(new WritableStream()).catch(() => {}); // it is cut off
  const page = attached(threadId);
  const running = run(page);
  while (!(last(page)?.role === "reasoning" && last(page).content.length > 10)) await new Promise((r) => setTimeout(r, 5));
  const half = last(page).id;
  process.stdout.write("reasons\n");
  const r = await running;
  assert.equal(r.error, undefined);
  assert.ok(r.events.some((e) => e.type === "CUSTOM" && e.name === "holdfast.takeover"), "nobody has taken the run over");
  await untilIdle(threadId);
  assert.ok(!page.messages.some((m) => m.id === half), "reasoning that was taken back is still shown");
  assert.deepEqual(page.messages.map((m) => m.role), ["user", "reasoning", "assistant"]);
  await sameAsServer(page);
});
