// The parts that every scenario uses: one official client, a fetch that keeps
// every raw frame, and a console that must stay silent.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { EventSchemas } from "@ag-ui/core/schemas";

export const base = process.env.HOLDFAST_URL;
export const version = process.env.AGUI_CLIENT ?? "1.0.0";
export const legacy = version !== "1.0.0";

const lib = await import(legacy ? "client-0-0-59" : "@ag-ui/client");
export const { HttpAgent } = lib;

export const frames = [];
export const warnings = [];

for (const level of ["warn", "error"]) {
  console[level] = (...args) => warnings.push(`${level}: ${args.map(String).join(" ")}`);
}

// cutAfter makes the next response end, as a broken connection does, once this
// many bytes have arrived.
let cutAfter = 0;
export function cutNext(bytes) {
  cutAfter = bytes;
}

const realFetch = globalThis.fetch;
globalThis.fetch = async (url, init) => {
  const res = await realFetch(url, init);
  if (!res.ok || !res.body) return res;
  const limit = cutAfter;
  cutAfter = 0;
  const decoder = new TextDecoder();
  let text = "";
  let seen = 0;
  const keep = new TransformStream({
    async transform(chunk, controller) {
      seen += chunk.byteLength;
      text += decoder.decode(chunk, { stream: true });
      let end;
      while ((end = text.indexOf("\n\n")) >= 0) {
        checkFrame(text.slice(0, end));
        text = text.slice(end + 2);
      }
      if (!limit || seen < limit) return controller.enqueue(chunk);
      // The server may have sent all of it at once. What came before the cut is read.
      controller.enqueue(chunk.subarray(0, chunk.byteLength - (seen - limit)));
      await new Promise((done) => setTimeout(done));
      controller.error(new TypeError("terminated"));
    },
  });
  return new Response(res.body.pipeThrough(keep), { status: res.status, headers: res.headers });
};

function checkFrame(frame) {
  const data = frame.split("\n").filter((l) => l.startsWith("data:"));
  if (data.length === 0) return;
  assert.equal(data.length, 1, "one data line a frame");
  assert.ok(!frame.includes("\r"), "LF only");
  const raw = JSON.parse(data[0].slice(5));
  const parsed = EventSchemas.safeParse(raw);
  assert.ok(parsed.success, `not valid against @ag-ui/core 1.0.0: ${data[0]}\n${parsed.error}`);
  const lost = missing(raw, parsed.data, "");
  assert.deepEqual(lost, [], `unknown to @ag-ui/core 1.0.0: ${data[0]}`);
  frames.push(raw);
}

// missing lists what the schema stripped.
function missing(raw, kept, path) {
  if (raw === null || typeof raw !== "object") return [];
  return Object.keys(raw).flatMap((k) =>
    kept && typeof kept === "object" && k in kept ? missing(raw[k], kept[k], `${path}.${k}`) : [`${path}.${k}`],
  );
}

export function agent(threadId = randomUUID(), more = {}) {
  return new HttpAgent({ url: `${base}/runs`, threadId, ...more });
}

// AttachAgent reads GET /threads/{thread}/stream instead of posting.
export class AttachAgent extends HttpAgent {
  requestInit(input) {
    const { body, ...init } = super.requestInit(input);
    return { ...init, method: "GET" };
  }
}

export function attached(threadId) {
  const protocol = legacy ? "?protocolVersion=none" : "";
  return new AttachAgent({ url: `${base}/threads/${threadId}/stream${protocol}`, threadId });
}

export function user(content) {
  return { id: randomUUID(), role: "user", content };
}

// run runs an agent and returns its outcome and the events it saw.
export async function run(a, params = {}) {
  const events = [];
  const result = { events, outcome: undefined, error: undefined };
  await a.runAgent(params, {
    onEvent({ event }) {
      events.push(event);
    },
    onRunFinishedEvent({ event }) {
      result.outcome = event.outcome ?? { type: "success" };
      if (event.outcome === undefined) result.bare = true;
    },
    onRunErrorEvent({ event }) {
      result.error = event;
    },
  });
  return result;
}

export async function say(a, content, params) {
  a.addMessage(user(content));
  return run(a, params);
}

export function last(a) {
  return a.messages[a.messages.length - 1];
}

export async function get(path) {
  const res = await realFetch(base + path);
  return { status: res.status, body: res.status === 204 ? null : await res.json() };
}

// plain drops what two views of one history may differ in.
export function plain(messages) {
  return messages.map((m) => JSON.parse(JSON.stringify(m)));
}

export async function serverHistory(threadId) {
  return (await get(`/threads/${threadId}/messages`)).body.messages;
}

// sameAsServer: what streamed in is what is stored, to the letter, except that the server
// has marked what the client brought.
export async function sameAsServer(a) {
  const stored = (await serverHistory(a.threadId)).map(({ metadata, ...m }) => {
    const { holdfast: { imported, ...marks } = {}, ...others } = metadata ?? {};
    if (Object.keys(marks).length > 0) others.holdfast = marks;
    return Object.keys(others).length > 0 ? { ...m, metadata: others } : m;
  });
  assert.deepEqual(plain(a.messages), stored);
}

// untilIdle waits until the thread's run has ended.
export async function untilIdle(threadId) {
  for (let i = 0; i < 600; i++) {
    const { body } = await get(`/threads/${threadId}`);
    if (body.status !== "running") return body;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error("the run did not end");
}

// The official client leaves a rejection unhandled when its connection is cut.
// Only that one is expected.
process.on("unhandledRejection", (e) => {
  if (e?.message !== "terminated") warnings.push(`unhandled rejection: ${e?.stack ?? e}`);
});

// rejects expects a run to fail; the client says so once on the console.
export async function rejects(running, why) {
  await assert.rejects(running, why);
  const at = warnings.findIndex((w) => w.startsWith("error: Agent execution failed"));
  if (at >= 0) warnings.splice(at, 1);
}

// test runs one scenario after the other; a warning of the client fails it.
let queue = Promise.resolve();
export function test(name, scenario) {
  queue = queue.then(async () => {
    try {
      await scenario();
      await new Promise((r) => setTimeout(r, 10));
      assert.deepEqual(warnings.splice(0), [], "the client must have nothing to complain about");
      process.stdout.write(`ok    ${name}\n`);
    } catch (e) {
      process.exitCode = 1;
      warnings.splice(0);
      process.stdout.write(`FAIL  ${name}\n${e?.stack ?? e}\n`);
    }
  });
}
