// Runs an agent against a server that cuts the first stream in the middle of a frame:
//
//   node test/cutonce.mjs HttpAgent|HoldfastAgent
//
// A program of its own, because what is tested is whether the process survives.
import { createServer } from 'node:http';
import { HoldfastAgent, HttpAgent } from './client.mjs';

const frame = (event) => `data: ${JSON.stringify({ threadId: 't', runId: 'r', ...event })}\n\n`;
let cut = false;
const server = createServer((request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Holdfast-Run': 'r' });
  response.write(frame({ type: 'RUN_STARTED' }));
  if (cut) return response.end(frame({ type: 'RUN_FINISHED' }));
  cut = true;
  return response.write('data: {"type":"RUN_FIN', () => response.destroy());
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));

const Agent = { HttpAgent, HoldfastAgent }[process.argv[2]];
const agent = new Agent({ url: `http://127.0.0.1:${server.address().port}/runs`, threadId: 't', maxDelay: 1 });
process.removeAllListeners('unhandledRejection'); // what Node does by default is what counts
await agent.runAgent({ runId: 'r' }).then(() => console.log('finished'), () => console.log('failed'));
await new Promise((done) => setImmediate(done));
console.log('survived');
server.close();
server.closeAllConnections();
