// An agent that speaks AG-UI, without any dependency: it plans a trip word by word, searches with a tool of
// its own, and books with another one. It keeps no conversation: what it is posted is all that it knows. A
// booking that was cut off has no known outcome, so it looks before it books again. PORT is where it listens,
// and each booking is a line in the file BOOKINGS.
import { createServer } from 'node:http';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const pace = Number(process.env.PACE ?? 40); // between two words, in ms

const bookings = process.env.BOOKINGS ?? 'bookings.txt';

const words = (text) => text.split(/(?<= )/);

// book books a seat, unless the conversation has one.
async function book(thread) {
  const lines = existsSync(bookings) ? readFileSync(bookings, 'utf8').split('\n') : [];
  if (lines.includes(thread)) return 'It is booked already.';
  appendFileSync(bookings, `${thread}\n`);
  await pause(10 * pace);
  return 'Booked.';
}

async function* run(input) {
  const ids = { threadId: input.threadId, runId: input.runId };
  yield { type: 'RUN_STARTED', ...ids };
  const results = new Map(input.messages.filter((m) => m.role === 'tool').map((m) => [m.toolCallId, m.content]));
  const done = ({ id }) => !(results.get(id) ?? 'Outcome unknown').startsWith('Outcome unknown');
  const all = input.messages.flatMap((m) => m.toolCalls ?? []);
  const [made, known] = [all, all.filter(done)].map((list) => list.map((c) => c.function.name));
  if (!made.includes('search')) {
    yield* says(input, 'First I look for trains that go to the mountains today. ');
    yield* calls(input, 'search', { to: 'Zermatt' }, async () => 'The next train goes at 10:02.');
  }
  if (!made.includes('book')) {
    yield* says(input, 'There is one at 10:02, which I book for you now. ');
  }
  if (!known.includes('book')) {
    yield* calls(input, 'book', { train: '10:02' }, () => book(input.threadId));
  }
  yield* says(input, 'Your seat is booked, and the train goes at 10:02. Have a good trip!');
  yield { type: 'RUN_FINISHED', ...ids };
}

async function* says(input, text) {
  const messageId = crypto.randomUUID();
  yield { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' };
  for (const delta of words(text)) {
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId, delta };
    await pause(pace);
  }
  yield { type: 'TEXT_MESSAGE_END', messageId };
}

async function* calls(input, toolCallName, args, work) {
  const toolCallId = crypto.randomUUID();
  yield { type: 'TOOL_CALL_START', toolCallId, toolCallName };
  yield { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) };
  yield { type: 'TOOL_CALL_END', toolCallId };
  yield { type: 'TOOL_CALL_RESULT', messageId: crypto.randomUUID(), toolCallId, content: await work() };
}

createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for await (const event of run(JSON.parse(body))) {
    if (response.destroyed) return;
    response.write(`data: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}).listen(Number(process.env.PORT ?? 8000), 'localhost', () => console.log('the agent listens'));
