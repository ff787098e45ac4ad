// The official client, whose parser drops the ids of Server-Sent Events, reads the cursors in
// the events' metadata. Its connections are cut again and again; with nothing but these
// cursors it gets each event once.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Observable } from "rxjs";
import { base, cutNext, HttpAgent, legacy, plain, serverHistory, test, untilIdle, user, version } from "./client.mjs";

const isEnd = (event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";

// ContinuingAgent goes on after the cursor of the last event until the run has ended.
class ContinuingAgent extends HttpAgent {
  cuts = 0;

  run(input) {
    return new Observable((out) => {
      let cursor;
      let ended = false;
      const read = (events) =>
        events.subscribe({
          next: (event) => {
            cursor = event.metadata?.holdfast?.cursor ?? cursor;
            ended = isEnd(event);
            out.next(event);
          },
          error: () => goOn(),
          complete: () => (ended ? out.complete() : goOn()),
        });
      const goOn = () => {
        if (ended) return out.complete();
        this.cuts++;
        cutNext(500 + Math.floor(Math.random() * 2000));
        read(cursor === undefined ? super.run(input) : this.rest(input, cursor));
      };
      cutNext(500);
      read(super.run(input));
    });
  }

  // rest is the official client's own reader of streams, with another request.
  rest(input, cursor) {
    const { body, ...init } = this.requestInit(input);
    const url = `${base}/threads/${input.threadId}/runs/${input.runId}/events${legacy ? "?protocolVersion=none" : ""}`;
    const next = Object.create(this, {
      url: { value: url },
      requestInit: { value: () => ({ ...init, method: "GET", headers: { ...init.headers, "Last-Event-ID": cursor } }) },
    });
    return HttpAgent.prototype.run.call(next, input);
  }
}

const headers = { "Holdfast-Cursors": "metadata" };

// withoutCursors drops what the official client has merged into messages and calls.
function withoutCursors(value) {
  if (Array.isArray(value)) return value.map(withoutCursors);
  if (value === null || typeof value !== "object") return value;
  const { metadata, ...rest } = value;
  const out = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, withoutCursors(v)]));
  const { holdfast: { cursor, imported, ...own } = {}, ...others } = metadata ?? {};
  const left = { ...others, ...(Object.keys(own).length > 0 ? { holdfast: own } : {}) };
  return Object.keys(left).length > 0 ? { ...out, metadata: left } : out;
}

test(`cut again and again (client ${version})`, async () => {
  const a = new ContinuingAgent({ url: `${base}/runs`, threadId: randomUUID(), headers });
  const seen = [];
  a.addMessage(user("plan 3 steps"));
  const runId = randomUUID();
  await a.runAgent({ runId }, { onEvent: ({ event }) => void seen.push(event) });
  assert.ok(a.cuts > 3, `cut ${a.cuts} times`);
  assert.ok(seen.every((e) => typeof e.metadata?.holdfast?.cursor === "string"), "each event of a log has its cursor");

  const log = await (await fetch(`${base}/threads/${a.threadId}/runs/${runId}/events${legacy ? "?protocolVersion=none" : ""}`)).text();
  const ids = [...log.matchAll(/^id: (.*)$/gm)].map((m) => m[1]);
  assert.deepEqual(seen.map((e) => e.metadata.holdfast.cursor), ids, "none is lost and none is doubled");
  assert.ok(!log.includes('"cursor":'), "who does not ask for cursors gets none");
  assert.deepEqual(withoutCursors(plain(a.messages)), withoutCursors(await serverHistory(a.threadId)));

  // What it sends back of the cursors is no news to the server.
  a.addMessage(user("hello there"));
  await a.runAgent({ runId: randomUUID() });
  const { status } = await untilIdle(a.threadId);
  assert.equal(status, "idle");
  assert.ok(!JSON.stringify(await serverHistory(a.threadId)).includes('"cursor":'));
});

test("attached", async () => {
  const threadId = randomUUID();
  const started = await fetch(`${base}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ threadId, runId: "r1", messages: [user("slow 150 words please")] }),
  });
  const reader = started.body.getReader(); // until the run has begun; a busy machine must attach before it ends
  await reader.read();
  reader.cancel();
  const page = new HttpAgent({ url: `${base}/runs`, threadId, headers });
  const seen = [];
  await page.runAgent({}, { onEvent: ({ event }) => void seen.push(event) });
  const first = seen.findIndex((e) => e.metadata?.holdfast?.cursor !== undefined);
  assert.ok(first >= 2, "the prelude has no cursors");
  assert.ok(seen.slice(first).every((e) => e.metadata.holdfast.cursor !== undefined), "what is live has");
  const { cursor } = seen[first].metadata.holdfast;
  const rest = await (await fetch(`${base}/threads/${threadId}/runs/r1/events`, { headers: { "Last-Event-ID": cursor } })).text();
  assert.equal([...rest.matchAll(/^id: /gm)].length, seen.length - first - 1);
});
