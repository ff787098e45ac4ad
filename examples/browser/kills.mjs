// Kills the server at PLACES places of an answer that uses tools and asks for approval, with each client as
// its makers ship it, and fails unless its page then shows what the server's history has.
//
//   node ../browser/kills.mjs path/to/holdfast [redis://…]
//
// in the folder of the example whose packages the client is made of. It prints a row for each client: at how
// many places it went on by itself, and at how many after what a person did.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from '../vanilla/node_modules/esbuild/lib/main.js';
import { drive, faultsOfEvent } from './harness.mjs';
import { installed } from './table.mjs';

const places = Number(process.env.PLACES ?? 1);
const question = 'plan 4 steps'; // on the agent asking, two of its calls need approval
const dir = mkdtempSync(join(tmpdir(), 'holdfast-kills-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

// --- The pages: each says a message, has a button that approves, and tells what it shows ---

const address = 'const [api, threadId] = ["api", "thread"].map((name) => new URLSearchParams(location.search).get(name));';

const react = (from, chat, before = '') => `
  import { useEffect, useState } from "react";
  import { createRoot } from "react-dom/client";
  ${from}
  ${address}
  ${chat}
  ${before}
  createRoot(document.body.appendChild(document.createElement("div"))).render(<Page />);`;

/** A page without a framework, around a client that has state, say and approve. */
const plain = (client) => `
  ${client}
  const [shown, approval] = ["pre", "button"].map((name) => document.body.appendChild(document.createElement(name)));
  approval.id = "approve";
  approval.onclick = approve;
  window.say = say;
  window.shows = state;
  window.draw = () => {
    shown.textContent = JSON.stringify(state(), null, 1);
    approval.hidden = !asks();
  };
  window.ready = true;
  draw();`;

const say = async (page, words) => {
  await page.until('window.ready');
  await page.run(`void say(${JSON.stringify(words)})`);
};

const type = (ready) => async (page, words) => {
  await page.until(`${ready} && document.querySelector('textarea:enabled')`);
  await page.run("document.querySelector('textarea').focus()");
  await page.type(words);
  await page.until(`document.querySelector('textarea').value === ${JSON.stringify(words)}`);
  await page.press('Enter');
};

const connected = "performance.getEntriesByType('resource').filter((e) => /\\/(connect|info)$/.test(e.name)).length >= 2";

// What helps when a page does not go on: its words, when it is done, and what.
const reload = { words: 'after a reload', do: ({ page }) => page.reload() };

const clients = {
  '@ag-ui/client': {
    home: 'vanilla',
    packages: ['@ag-ui/client'],
    say,
    trouble: 'window.rejected',
    remedy: { words: 'after the same again', do: ({ page }) => page.run('again()') },
    source: plain(`
      import { HttpAgent } from "@ag-ui/client";
      ${address}
      const agent = new HttpAgent({ url: api + "/agents/asking/runs", threadId });
      let busy = false, last;
      const run = async (parameters) => {
        [busy, last, window.rejected] = [true, parameters, false];
        await agent.runAgent(parameters).catch(() => { window.rejected = true; });
        busy = false;
        draw();
      };
      agent.subscribe({ onMessagesChanged: () => draw() });
      window.again = () => void run(last);
      const say = (content) => {
        agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
        return run({});
      };
      const asks = () => !busy && !window.rejected && agent.pendingInterrupts.length > 0;
      const approve = () => run({ resume: agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } })) });
      const state = () => agent.messages;`),
  },
  'TanStack AI': {
    home: 'vanilla',
    packages: ['@tanstack/ai-client'],
    from: '../clients/js',
    say,
    trouble: 'window.rejected',
    remedy: reload,
    source: plain(`
      import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
      ${address}
      const chat = new ChatClient({
        threadId,
        persistence: true,
        connection: fetchServerSentEvents(api + "/agents/asking/runs"),
        onError: () => { window.rejected = true; },
        onMessagesChange: () => window.draw?.(),
        onLoadingChange: () => window.draw?.(),
      });
      chat.attach();
      const say = (words) => chat.sendMessage(words);
      const asked = () => chat.getMessages().flatMap(({ parts }) => parts).find(({ state }) => state === "approval-requested");
      const asks = () => !chat.getIsLoading() && asked() !== undefined;
      const approve = () => chat.addToolApprovalResponse({ id: asked().approval.id, approved: true });
      const state = () => chat.getMessages();`),
  },
  CopilotKit: {
    home: 'copilotkit',
    packages: ['@copilotkit/react-core'],
    say: type(connected),
    trouble: 'window.killed',
    remedy: reload,
    source: react(`
      import { CopilotChat, CopilotKitProvider, useAgent, useInterrupt } from "@copilotkit/react-core/v2";`, `
      function Tools() {
        const { agent } = useAgent({ agentId: "asking" });
        window.shows = () => agent.messages;
        useInterrupt({ agentId: "asking", render: ({ interrupt, resolve }) => <button id="approve" onClick={() => resolve({ approved: true }, interrupt.id)}>Approve</button> });
        return null;
      }
      const Page = () => <CopilotKitProvider runtimeUrl={api + "/copilotkit"}><Tools /><CopilotChat agentId="asking" threadId={threadId} /></CopilotKitProvider>;`),
  },
  'Vercel AI SDK': {
    home: 'ai-sdk',
    packages: ['@ai-sdk/react', 'ai'],
    say,
    trouble: 'window.failed',
    remedy: reload,
    source: react(`
      import { useChat } from "@ai-sdk/react";
      import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";`, `
      const url = api + "/ai-sdk/asking";
      function Page() {
        const { messages, sendMessage, status, error, addToolApprovalResponse } = useChat({
          id: threadId, messages: initial, resume: true, transport: new DefaultChatTransport({ api: url }),
          sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
        });
        useEffect(() => { window.failed = Boolean(error); }, [error]);
        window.shows = () => messages;
        window.say = (text) => sendMessage({ text });
        window.ready = true;
        const asked = status === "ready" && messages.flatMap(({ parts }) => parts).find(({ state }) => state === "approval-requested");
        return <>
          <pre>{JSON.stringify(messages, null, 1)}</pre>
          {asked && <button id="approve" onClick={() => addToolApprovalResponse({ id: asked.approval.id, approved: true })}>Approve</button>}
        </>;
      }`, 'const { messages: initial } = await (await fetch(url + "/" + threadId)).json();'),
  },
  'assistant-ui': {
    home: 'assistant-ui',
    packages: ['@ag-ui/client', '@assistant-ui/react', '@assistant-ui/react-ag-ui'],
    say: type('true'),
    // It cannot come back to a run, so it is left alone until the run has ended without it. Then its agent is made
    // again, because it asks for the answers that the server has; a message makes it show the thread.
    trouble: 'window.killed',
    after: true,
    remedy: {
      words: 'after a reload and a message',
      do: async ({ page }, { say: next }) => {
        await page.reload();
        await next(page, 'hello there');
      },
    },
    source: react(`
      import { AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive, useAuiState } from "@assistant-ui/react";
      import { useAgUiInterrupts, useAgUiRuntime, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
      import { HttpAgent } from "@ag-ui/client";`, `
      const Message = () => <MessagePrimitive.Root><MessagePrimitive.Parts /></MessagePrimitive.Root>;
      function Shown() {
        const messages = useAuiState(({ thread }) => thread.messages);
        const interrupts = useAgUiInterrupts();
        const submit = useAgUiSubmitInterruptResponses();
        window.shows = () => messages.map(({ role, content }) => ({ role, parts: content }));
        return interrupts.length > 0 && <button id="approve" onClick={() => submit(interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } })))}>Approve</button>;
      }
      function Page() {
        const [agent] = useState(() => new HttpAgent({ url: api + "/agents/asking/runs", threadId }));
        return <AssistantRuntimeProvider runtime={useAgUiRuntime({ agent })}><Shown /><ThreadPrimitive.Root>
          <ThreadPrimitive.Messages components={{ Message }} /><ComposerPrimitive.Root><ComposerPrimitive.Input /></ComposerPrimitive.Root>
        </ThreadPrimitive.Root></AssistantRuntimeProvider>;
      }`),
  },
};

// --- What is shown ------------------------------------------------------------------------

/** A value that may be JSON as text. */
function value(given) {
  if (typeof given !== 'string') return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

/** What a person sees of messages, whichever client keeps them: what was said, and the calls with their results. */
function transcript(messages) {
  const results = new Map(messages.filter(({ role }) => role === 'tool').map(({ toolCallId, content }) => [toolCallId, content]));
  const called = (name, input, result) => ({ call: name, input: value(input), result: value(result) });
  return messages.flatMap(({ role, content, toolCalls = [], parts }) => {
    if (role !== 'user' && role !== 'assistant') return [];
    const words = (text) => (text ? [{ [role]: text }] : []);
    if (parts === undefined) return [...words(content), ...toolCalls.map(({ id, function: { name, arguments: args } }) => called(name, args, results.get(id)))];
    return parts.flatMap((part) => {
      if (part.type === 'text') return words(part.text ?? part.content);
      if (part.type === 'tool-call') return [called(part.toolName ?? part.name, part.args ?? part.arguments, part.result ?? part.output)];
      if (part.type.startsWith('tool-') && part.toolCallId !== undefined && part.input !== undefined) return [called(part.type.slice(5), part.input, part.output)];
      return [];
    });
  });
}

const shows = async (page) => transcript(await page.run('JSON.parse(JSON.stringify(window.shows?.() ?? []))'));

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Waits until the page shows what the server has; false if it never does. */
async function whole({ page, server }, thread, seconds) {
  for (const end = Date.now() + seconds * 1000; ;) {
    const kept = transcript(await server.messages(thread));
    try {
      assert.deepEqual(await shows(page), kept);
      return true;
    } catch (error) {
      if (Date.now() > end) return error.message;
    }
    await pause(50);
  }
}

// --- What is done -------------------------------------------------------------------------

/** Presses the button that approves; false if there is none. */
const approve = "(() => { const b = document.querySelector('#approve'); if (!b || b.hidden) return false; b.click(); return true; })()";

/** Asks, approves, and kills the server once the page has been sent so many frames. Returns what helped. */
async function answered(t, name, place) {
  const { page, server, frames } = t;
  const client = clients[name];
  const thread = `${name.replaceAll(/\W/g, '')}-${place}-${Date.now()}`;
  await page.goto(`${t.pages}${client.page}?${new URLSearchParams({ api: server.api, thread })}`);
  let restarted;
  let over = false;
  const kill = () => {
    restarted = server.kill().then(() => server.start());
  };
  let helped = 'by itself';
  const help = async () => {
    helped = client.remedy.words;
    await client.remedy.do(t, client);
  };
  const from = frames.count;
  if (place !== undefined) {
    void frames.reaches(from + place).then(() => over || kill());
  }
  await client.say(page, question);
  let told = false;
  for (const end = Date.now() + 300_000; ; await pause(40)) {
    if (restarted !== undefined && !told) {
      await restarted;
      told = true;
      await page.run('window.killed = true');
    }
    assert.ok(Date.now() < end, `the answer of ${thread} never ended`);
    const { status } = await server.thread(thread).catch(() => ({}));
    if (status === 'idle') break;
    if (await page.run(approve)) {
      await pause(300); // until the page has noticed
      continue;
    }
    const lost = told && (await page.run(`Boolean(${client.trouble})`));
    // A page that cannot come back to its run waits until it has ended without it.
    if (lost && (!client.after || status === 'interrupted')) {
      await page.run('window.killed = false');
      await help();
    }
  }
  over = true;
  if (place === undefined) {
    assert.equal(await whole(t, thread, 10), true);
    return frames.count - from;
  }
  if (restarted === undefined) kill(); // it had fewer frames than the others
  await restarted;
  let shown = await whole(t, thread, 3);
  if (shown !== true) {
    await help();
    shown = await whole(t, thread, 10);
  }
  assert.equal(shown, true, `killed after ${place} frames`);
  return helped;
}

/** Writes down what a whole campaign has measured, and with which versions. CI compares that with docs/frontends.md. */
function note(name, cell) {
  const file = new URL('kills.json', import.meta.url);
  const noted = JSON.parse(readFileSync(file, 'utf8'));
  const { from, home, packages } = clients[name];
  const cells = noted[name]?.cells ?? ['', ''];
  cells[process.argv[3] === undefined ? 0 : 1] = cell;
  noted[name] = { cells, from: from ?? home, packages: installed(from ?? home, packages) };
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(Object.keys(clients).filter((each) => noted[each]).map((each) => [each, noted[each]])), null, 1)}\n`);
}

const checks = {};
for (const [name, client] of Object.entries(clients)) {
  if (client.home !== basename(process.cwd())) continue;
  checks[name] = async (t) => {
    client.page = `${name.replaceAll(/\W/g, '')}.html`;
    await build({
      stdin: { contents: client.source, loader: 'tsx', resolveDir: fileURLToPath(new URL(`../${client.from ?? client.home}`, import.meta.url)) },
      outfile: join(dir, client.page.replace('.html', '.js')),
      bundle: true, format: 'esm', jsx: 'automatic', preserveSymlinks: true, logLevel: 'error',
      loader: { '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
      define: { 'process.env.NODE_ENV': '"production"' },
    });
    writeFileSync(join(dir, client.page), `<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="${client.page.replace('.html', '.js')}"></script>`);
    const frames = await answered(t, name);
    const helped = new Map();
    for (let n = 0; n < places; n++) {
      const how = await answered(t, name, Math.max(1, Math.round((frames * (n + 0.5)) / places)));
      helped.set(how, (helped.get(how) ?? 0) + 1);
      t.complaints.length = 0;
    }
    const cell = `${places} places of ${frames} frames: ${[...helped].sort().map(([how, count]) => `${count} ${how}`).join(', ')}`;
    console.log(`| ${name} | ${cell} |`);
    if (places >= 50) note(name, cell);
  };
}

// Chunks of the AI SDK, and messages of TanStack's, are none of AG-UI's.
const faults = (text) => (/"type":"[A-Z]/.test(text) && !(text.includes('"MESSAGES_SNAPSHOT"') && text.includes('"parts":')) ? faultsOfEvent(text) : []);
await drive({ home: pathToFileURL(`${dir}/`), checks, faults });
