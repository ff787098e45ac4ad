// Both versions of the official client in Chromium, from a page of another origin: kill -9
// and a reload in the middle of an answer.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { launch, tab } from '../../../web/test/cdp.mjs';
import { freePort, needsServer, Server } from './client.mjs';

const programs = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean);
const chromium = programs.find((program) => spawnSync(program, ['--version']).status === 0);
if (!chromium && process.env.HOLDFAST_REQUIRE_ALL === '1') throw new Error('there is no Chromium here');
const needs = chromium ? needsServer : { skip: 'there is no Chromium here' };

const root = fileURLToPath(new URL('..', import.meta.url));

async function bundle(client) {
  const { outputFiles: [file] } = await build({
    stdin: { contents: 'export * from "holdfast-agent";', resolveDir: root },
    absWorkingDir: root, bundle: true, format: 'esm', write: false, alias: { '@ag-ui/client': client },
  });
  return file.text;
}

/** Serves a page that has the agent, and returns its address. */
async function page(script) {
  const server = createServer((request, response) => {
    const isScript = request.url === '/agent.js';
    response.writeHead(200, { 'Content-Type': isScript ? 'text/javascript' : 'text/html' });
    response.end(isScript ? script : '<!doctype html><link rel="icon" href="data:,"><script type="module">import * as holdfast from "/agent.js"; window.holdfast = holdfast;</script>');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

for (const [version, client] of [['1.0.0', '@ag-ui/client'], ['0.0.59', 'client-0-0-59']]) {
  test(`kill -9 and a reload in mid-stream (client ${version})`, needs, async (t) => {
    const server = await new Server(await freePort(), ['--demo-delay=20ms']).start();
    t.after(() => server.stop());
    const site = await page(await bundle(client));
    t.after(() => site.close());
    const browser = launch(chromium);
    t.after(() => browser.close());
    const complaints = [];
    const view = await tab(browser, complaints);
    const same = async () => assert.deepEqual(await view.run('agent.messages'), await server.history('t1'));
    const agent = `window.agent = new holdfast.HoldfastAgent({ url: ${JSON.stringify(server.url)}, threadId: "t1", maxDelay: 100 })`;
    const say = (id, content) => `${agent}; agent.messages = []; agent.addMessage({ id: "${id}", role: "user", content: "${content}" }); agent.runAgent().then(() => (window.done = true)); 0`;
    const halfway = 'agent.messages.at(-1).role === "assistant" && agent.messages.at(-1).content.split(" ").length > 8';

    await view.goto(site.url);
    await view.until('window.holdfast');
    await view.run(say('m1', 'slow 30 words'));
    await view.until(halfway);
    await server.kill();
    await server.start();
    await view.until('window.done');
    await same();

    await view.run(say('m2', 'slow 30 words'));
    await view.until(halfway);
    await view.reload();
    await view.until('window.holdfast');
    await view.run(`${agent}; agent.connectAgent().then(() => (window.done = true)); 0`);
    await view.until('window.done');
    await same();
    // Chromium itself logs connections that break.
    assert.deepEqual(complaints.filter((text) => !text.startsWith('network:')), []);
  });
}
