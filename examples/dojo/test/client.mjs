// The features with the official client, which has no page: it brings the tools of one, and answers
// for the person.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { HttpAgent } from '../../../test/oracle/node_modules/@ag-ui/client/dist/index.mjs';
import { features } from './features.mjs';

/** Messages without what the server notes at those of a client. */
const plain = (messages) => JSON.parse(JSON.stringify(messages)).map(({ metadata, ...message }) => message);

/** The calls that nobody has answered. */
function open(messages) {
  const answered = new Set(messages.map(({ toolCallId }) => toolCallId));
  return messages.flatMap(({ toolCalls }) => toolCalls ?? []).filter(({ id }) => !answered.has(id));
}

/** Goes through a feature, and compares what the client has with what the server has. */
export async function converse(id, server) {
  const { agent: name = id, say, client = {}, events: seen, history } = features[id];
  const threadId = `client-${id}-${randomUUID()}`;
  const agent = new HttpAgent({ url: `${server.api}/agents/${name}/runs`, threadId, initialState: client.state });
  const content = client.parts ? [{ type: 'text', text: say }, ...client.parts] : say;
  agent.addMessage({ id: randomUUID(), role: 'user', content });
  const { tools } = client;
  const events = [];
  await agent.runAgent({ tools }, { onEvent: ({ event }) => { events.push(event); } });
  seen?.(events, agent.state);
  if (client.payload) {
    const resume = agent.pendingInterrupts.map((asked) => ({ interruptId: asked.id, status: 'resolved', payload: client.payload }));
    assert.equal(resume.length, 1);
    await agent.runAgent({ resume });
  }
  for (const call of open(agent.messages)) {
    agent.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call.id, content: client.answers[call.function.name] });
    await agent.runAgent({ tools });
  }
  history(agent.messages, agent.state);
  assert.deepEqual(plain(agent.messages), plain(await server.messages(threadId)));
  const { status } = await server.thread(threadId);
  assert.equal(status, 'idle');
}
