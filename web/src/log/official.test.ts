// reduce against the official client: the same events, through its whole pipeline, as our own
// client runs it. Their views are compared after every event.

import { HoldfastAgent } from 'holdfast-agent';
import { describe, expect, it } from 'vitest';
import { isFields, list, text, type Fields } from './json';
import { Log, record, type LogEvent, type LogRecord } from './record';
import { reduce } from './reduce';
import { messagesOf } from './said';
import { madeUp } from './testing';
import type { View } from './view';

/** The parts of a message that both have to agree on. */
function normal(value: unknown): Fields {
  const message = isFields(value) ? value : {};
  const calls = list(message['toolCalls']).map((each) => {
    const { id, function: made } = each as { id: string; function: { name: string; arguments: string } };
    return { id, name: made.name, arguments: made.arguments };
  });
  const { id, role, toolCallId, content } = message;
  return { id, role, toolCallId, content: typeof content === 'string' || content === undefined ? text(content) : content, calls };
}

/** Messages in their order, and activities, of which the page leaves out those of a branch that was left. */
const shown = (messages: readonly unknown[]): { said: readonly Fields[]; activities: readonly Fields[] } => {
  const all = messages.map(normal);
  return { said: all.filter((message) => message['role'] !== 'activity'), activities: all.filter((message) => message['role'] === 'activity') };
};

function same(view: View, theirs: Seen, at: number): void {
  const ours = shown(messagesOf(view));
  expect({ at, said: ours.said, state: stateOf(view) }).toEqual({ at, said: theirs.messages.said, state: theirs.state });
  for (const activity of ours.activities) expect(theirs.messages.activities).toContainEqual(activity);
}

interface Seen {
  readonly messages: ReturnType<typeof shown>;
  readonly state: unknown;
}

/** The official client's view before each event of a run, and after all. */
async function official(agent: HoldfastAgent, events: readonly LogEvent[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  body.text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  await agent.runAgent({ runId: text(events[0]?.['runId']) }, {
    onEvent: ({ messages, state }) => void seen.push({ messages: shown(messages), state: structuredClone(state) as unknown }),
  });
  return [...seen, { messages: shown(agent.messages), state: structuredClone(agent.state) as unknown }];
}

const body = { text: '' };

const newAgent = (): HoldfastAgent => new HoldfastAgent({ url: 'http://server/runs', threadId: 't', fetch: async () => new Response(body.text, { headers: { 'Content-Type': 'text/event-stream' } }) });

/** The state of a thread without one is nothing for us, and empty for the client. */
const stateOf = (view: View): unknown => view.state ?? {};

function records(runs: readonly (readonly LogEvent[])[]): LogRecord[] {
  let number = 0;
  return runs.flatMap((events) => events.map((event) => record(event, `${++number}-t`, text(events[0]?.['runId'])) as LogRecord));
}

const seeds = Array.from({ length: 60 }, (_, i) => i + 1);

describe('reduce and the official client show the same', () => {
  it.each(seeds)('after every event of the thread that %i makes up', async (seed) => {
    const { runs } = madeUp(seed);
    const log = Log.of(records(runs));
    const agent = newAgent();
    let position = 0;
    for (const events of runs) {
      const seen = await official(agent, events);
      expect(seen).toHaveLength(events.length + 1);
      for (const [i, each] of seen.entries()) {
        const view = reduce(log, position + i);
        // An emptied list is filled again by the next event; the page waits for that.
        if (view.inner.aside !== undefined) continue;
        same(view, each, position + i);
      }
      position += events.length;
    }
  });

  it.each(seeds.slice(0, 20))('after every run of the thread of chunks that %i makes up', async (seed) => {
    const { runs } = madeUp(seed, { chunks: true });
    const log = Log.of(records(runs));
    const agent = newAgent();
    let position = 0;
    for (const events of runs) {
      const seen = await official(agent, events);
      position += events.length;
      same(reduce(log, position), seen.at(-1) as Seen, position);
    }
  });
});
