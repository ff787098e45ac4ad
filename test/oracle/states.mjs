// The shared state as the official client has it. Each line of the input is [event, state]: an event of a run, and the
// state after it. Events after RUN_FINISHED are another run's, of another client.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { AbstractAgent } from "@ag-ui/client";
import { from } from "rxjs";

class Replay extends AbstractAgent {
  constructor(events) {
    super({ threadId: events[0].threadId });
    this.events = events;
  }
  run() {
    return from(this.events);
  }
}

const said = [];
console.warn = console.error = (...args) => said.push(args.map(String).join(" "));

let runs = 0;
let events = [];
let states = [];
for await (const line of createInterface({ input: process.stdin })) {
  const [event, state] = JSON.parse(line);
  events.push(event);
  states.push(state);
  if (event.type !== "RUN_FINISHED") continue;
  const agent = new Replay(events);
  const before = []; // the state when an event comes
  await agent.runAgent({}, { onEvent: ({ state }) => void before.push(structuredClone(state)) });
  assert.deepEqual([...before.slice(1), structuredClone(agent.state)], states);
  assert.deepEqual(said, []);
  runs++;
  events = [];
  states = [];
}
console.log(`${runs} runs`);
