// One conversation of the official client: it says something, follows the run to its end,
// and writes what it has seen then. With "plain" it is the official client alone, without
// what this package adds.
//
//   node test/follow.mjs URL THREAD WORDS [plain]
import { HttpAgent } from '@ag-ui/client';
import { HoldfastAgent } from 'holdfast-agent';

const [url, threadId, words, plain] = process.argv.slice(2);
const seen = { messages: [], state: null, events: {}, reconnects: 0, longest: 0, error: '', end: '', warnings: [] };
for (const level of ['warn', 'error']) {
  console[level] = (...args) => seen.warnings.push(`${level}: ${args.map(String).join(' ')}`.slice(0, 500));
}
process.on('unhandledRejection', (error) => seen.warnings.push(`unhandled rejection: ${error}`));

const onConnection = (state) => {
  if (state === 'reconnecting') seen.reconnects++;
};
const agent = plain ? new HttpAgent({ url, threadId }) : new HoldfastAgent({ url, threadId, onConnection });
agent.addMessage({ id: 'said', role: 'user', content: words });
let last = performance.now();
try {
  await agent.runAgent({}, {
    onEvent({ event }) {
      const now = performance.now();
      seen.longest = Math.max(seen.longest, Math.round(now - last));
      last = now;
      seen.events[event.type] = (seen.events[event.type] ?? 0) + 1;
      if (event.type === 'RUN_FINISHED') seen.end = event.outcome?.type ?? 'success';
      if (event.type === 'RUN_ERROR') seen.end = `${event.code}: ${event.message}`;
    },
  });
} catch (error) {
  seen.error = String(error);
}
seen.messages = agent.messages;
seen.state = agent.state;
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
