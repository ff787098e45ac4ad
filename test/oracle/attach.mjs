// Reads streams of events, one on each line of the standard input, as answers to the official
// client. It takes each of them, and whoever has seen a run, in however many parts, has the
// same messages.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const complaints = [];
for (const level of ["warn", "error"]) console[level] = (...args) => complaints.push(args.map(String).join(" "));

const shown = new Map();
let streams = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { name, run, events } = JSON.parse(line);
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const fetch = async () => new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  const agent = new HttpAgent({ url: "http://localhost/runs", threadId: events[0].threadId, fetch });
  try {
    await agent.runAgent({ runId: events[0].runId });
    assert.deepEqual(complaints.splice(0), [], "the client must have nothing to complain about");
    streams++;
    if (run === "") continue;
    const messages = JSON.parse(JSON.stringify(agent.messages));
    if (shown.has(run)) assert.deepEqual(messages, shown.get(run));
    else shown.set(run, messages);
  } catch (e) {
    process.stdout.write(`FAIL  ${name}\n${e?.stack ?? e}\n${body}\n`);
    process.exit(1);
  }
}
process.stdout.write(`${streams} streams, ${shown.size} runs\n`);
