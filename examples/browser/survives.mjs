// Measures in a browser what a cut, a reload and the server's death do to an answer with each
// client, prints it as the table of docs/frontends.md, and fails if the page says something else.
//
//   node survives.mjs path/to/holdfast [redis://…]
//
// A new client is one more of `clients`: its page, and what helps when it does not continue.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from '../vanilla/node_modules/esbuild/lib/main.js';
import { drive, faultsOfEvent } from './harness.mjs';
import { Line } from './line.mjs';
import { installed, rowsOf } from './table.mjs';

const examples = fileURLToPath(new URL('..', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'holdfast-survives-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

// --- The clients --------------------------------------------------------------------------

/** A page around an agent, without a framework: it shows what the agent has. */
const around = (agent, back, reload) => ({
  from: 'vanilla',
  packages: ['@ag-ui/client'],
  reload,
  source: (api, threadId) => `
    import { HttpAgent } from "@ag-ui/client";
    import { HoldfastAgent } from "holdfast-agent";
    import { resumingFetch } from "holdfast-agent/fetch";
    const [url, threadId] = ["${api}/runs", "${threadId}"];
    const agent = ${agent};
    const pre = document.body.appendChild(document.createElement("pre"));
    agent.subscribe({ onMessagesChanged: ({ messages }) => { pre.textContent = messages.map((m) => m.content ?? "").join("\\n\\n"); } });
    window.again = () => agent.runAgent().catch(() => { window.rejected = true; });
    window.say = (content) => { agent.addMessage({ id: crypto.randomUUID(), role: "user", content }); again(); };
    window.back = () => { ${back}; };
    window.ready = true;`,
  say: async (page, words) => {
    await page.until('window.ready');
    await page.run(`say(${JSON.stringify(words)})`);
  },
  back: async (page) => {
    await page.until('window.ready');
    await page.run('back()');
  },
  trouble: async ({ page }) => ((await page.run('window.rejected')) ? '`runAgent` rejects' : 'it stops'),
  remedies: { 'the same list again continues': ({ page }) => page.run('void again()') },
});

/** A page of components with a field to write in, which takes a message once something is true. */
const components = (from, packages, source, ready = 'true') => ({
  from,
  packages,
  reload: 'by itself',
  source,
  say: async (page, words) => {
    await page.until(`${ready} && document.querySelector('textarea:enabled')`);
    await page.run("document.querySelector('textarea').focus()");
    await page.type(words);
    await page.until(`document.querySelector('textarea').value === ${JSON.stringify(words)}`);
    await page.press('Enter');
    await page.until("document.querySelector('textarea').value === ''");
  },
  back: async () => {},
  trouble: async ({ complaints }) => (complaints.length > 0 ? 'an error' : 'it stops'),
  remedies: {
    'a reload shows all': ({ page }) => page.reload(),
    'the next message shows all': ({ page }, { say }) => say(page, 'hello'),
  },
});

const connected = "performance.getEntriesByType('resource').filter((e) => /\\/(connect|info)$/.test(e.name)).length >= 2";
const copilotKit = (before = '') => components('copilotkit', ['@copilotkit/react-core'], (api, threadId) => `
  import { createRoot } from "react-dom/client";
  import { CopilotChat, CopilotKitProvider } from "@copilotkit/react-core/v2";
  import { resumeRuns } from "./src/resume";
  const runtimeUrl = "${api}/copilotkit";
  ${before};
  createRoot(document.body.appendChild(document.createElement("div"))).render(
    <CopilotKitProvider runtimeUrl={runtimeUrl}><CopilotChat agentId="demo" threadId="${threadId}" /></CopilotKitProvider>);`, connected);

const assistantUI = (agent, adapters) => components('assistant-ui', ['@ag-ui/client', '@assistant-ui/react', '@assistant-ui/react-ag-ui'], (api, threadId) => `
  import { useEffect, useState } from "react";
  import { createRoot } from "react-dom/client";
  import { AssistantRuntimeProvider, ComposerPrimitive, ExportedMessageRepository, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
  import { fromAgUiMessages, useAgUiRuntime } from "@assistant-ui/react-ag-ui";
  import { HttpAgent } from "@ag-ui/client";
  import { AssistantUIAgent } from "holdfast-agent/assistant-ui";
  const [url, threadId] = ["${api}/runs", "${threadId}"];
  const Message = () => <MessagePrimitive.Root><MessagePrimitive.Parts /></MessagePrimitive.Root>;
  function Chat() {
    const [agent] = useState(() => ${agent});
    const [adapters] = useState(() => ${adapters});
    useEffect(() => () => agent.detach?.(), [agent]);
    return <AssistantRuntimeProvider runtime={useAgUiRuntime({ agent, adapters })}><ThreadPrimitive.Root>
      <ThreadPrimitive.Messages components={{ Message }} /><ComposerPrimitive.Root><ComposerPrimitive.Input /></ComposerPrimitive.Root>
    </ThreadPrimitive.Root></AssistantRuntimeProvider>;
  }
  createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat />);`);

const aiSDK = (more = '') => ({
  ...components('ai-sdk', ['@ai-sdk/react', 'ai'], (api, threadId) => `
  import { useEffect, useState } from "react";
  import { createRoot } from "react-dom/client";
  import { useChat } from "@ai-sdk/react";
  import { DefaultChatTransport } from "ai";
  import { resumingFetch } from "${join(examples, '../clients/js/dist/fetch.js')}";
  const [api, id] = ["${api}/ai-sdk/demo", "${threadId}"];
  function Chat({ messages: initial }) {
    const { messages, sendMessage, error } = useChat({ id, messages: initial, resume: true, transport: new DefaultChatTransport({ api${more} }) });
    const [words, setWords] = useState("");
    useEffect(() => { window.failed = Boolean(error); }, [error]);
    const send = (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      void sendMessage({ text: words });
      setWords("");
    };
    return <>
      {messages.map((m) => <p key={m.id}>{m.parts.map((part) => part.text).join("")}</p>)}
      <textarea value={words} onChange={(event) => setWords(event.target.value)} onKeyDown={send} />
    </>;
  }
  const { messages } = await (await fetch(\`\${api}/\${id}\`)).json();
  createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat messages={messages} />);`),
  reload: '`resume: true`',
  trouble: async ({ page }) => ((await page.run('window.failed')) ? 'an error' : 'it stops'),
  remedies: {
    'continues when the tab is shown again or reloaded': async ({ page }, client, again) => {
      const shownAgain = async () => {
        await page.until('window.failed');
        await page.run("document.dispatchEvent(new Event('visibilitychange'))");
      };
      for (const act of [shownAgain, () => page.reload()]) assert.ok(await again(act));
    },
  },
});

/** Kills the server for longer than its client waits, which a reload helps. */
const late = async (t, client, api, threadId) => {
  const killed = async () => {
    await t.server.kill();
    await t.page.until('window.rejected', 30);
    await t.server.start();
  };
  assert.equal(await asked(t, client, api, threadId, killed), false);
  await t.page.reload();
  assert.ok(await shown(t.page));
};

const tanStack = {
  from: '../clients/js',
  packages: ['@tanstack/ai-client'],
  reload: 'by itself',
  source: (api, threadId) => `
    import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
    const pre = document.body.appendChild(document.createElement("pre"));
    const chat = new ChatClient({
      threadId: "${threadId}",
      persistence: true,
      connection: fetchServerSentEvents("${api}/runs"),
      onMessagesChange: (messages) => { pre.textContent = messages.flatMap(({ parts }) => parts).map(({ content }) => content).join("\\n\\n"); },
      onError: () => { window.rejected = true; },
    });
    chat.attach();
    window.say = (content) => void chat.sendMessage(content);
    window.ready = true;`,
  say: async (page, words) => {
    await page.until('window.ready');
    await page.run(`say(${JSON.stringify(words)})`);
  },
  back: async () => {},
  trouble: async ({ page }) => ((await page.run('window.rejected')) ? 'an error' : 'it stops'),
  remedies: { 'a reload shows all': ({ page }) => page.reload() },
  // Its death is also tried with one that does not come back in time.
  late: 'continues, if a server answers within [a second](#tanstack-ai)',
};

const clients = {
  'holdfast-agent': around('new HoldfastAgent({ url, threadId })', 'agent.connectAgent()', '`connectAgent()`'),
  '@ag-ui/client': around('new HttpAgent({ url, threadId })', 'again()', 'an empty list of messages'),
  '@ag-ui/client with our fetch': around('new HttpAgent({ url, threadId, fetch: resumingFetch() })', 'again()', 'an empty list of messages'),
  CopilotKit: copilotKit(),
  'CopilotKit with our fetch': copilotKit('resumeRuns(runtimeUrl)'),
  'Vercel AI SDK': aiSDK(),
  'Vercel AI SDK with our fetch': aiSDK(', fetch: resumingFetch()'),
  'TanStack AI': tanStack,
  'assistant-ui': assistantUI('new HttpAgent({ url, threadId })', '({})'),
  'assistant-ui with our agent': assistantUI(
    'new AssistantUIAgent({ url, threadId })',
    '({ history: agent.history((messages) => ExportedMessageRepository.fromArray(fromAgUiMessages(messages))) })',
  ),
};

// --- What is done to them -----------------------------------------------------------------

const said = 'document.body.innerText.match(/word-\\d+/g) ?? []';
const whole = `[${said}].flat().join() === Array.from({ length: 20 }, (_, n) => 'word-' + (n + 1)).join()`;

/** Builds a client's page for a thread, and returns its path. */
async function made({ from, source }, api, threadId) {
  const resolveDir = join(examples, from);
  const loader = { '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' };
  await build({
    stdin: { contents: source(api, threadId), loader: 'tsx', resolveDir },
    outfile: join(dir, `${threadId}.js`),
    bundle: true, format: 'esm', jsx: 'automatic', preserveSymlinks: true, logLevel: 'error', loader,
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  const page = `<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="${threadId}.js"></script>`;
  writeFileSync(join(dir, `${threadId}.html`), page);
  return `${threadId}.html`;
}

/** Asks for an answer, does something to it in the middle, and returns whether all of it is shown once it has ended. */
async function asked(t, client, api, threadId, harm) {
  await t.page.goto(t.pages + (await made(client, api, threadId)));
  await client.say(t.page, 'slow 20');
  await t.page.until(`(${said}).length >= 3`);
  assert.equal((await t.server.thread(threadId)).status, 'running');
  await harm();
  await t.server.ended(threadId);
  return shown(t.page);
}

const shown = (page) => page.until(whole, 5).then(() => true, () => false);

/** What the table says of a client whose answer was interrupted. */
async function after(t, client, ask) {
  if (await ask(async () => {})) return 'continues';
  const trouble = await client.trouble(t);
  for (const [words, remedy] of Object.entries(client.remedies)) {
    await remedy(t, client, ask);
    if (await shown(t.page)) return `${trouble}, and ${words}`;
  }
  return `${trouble}, and the rest is lost`;
}

/** Measures a client's three cells. */
async function measured(t, client, line, api, name) {
  let asks = 0;
  // Asks for an answer that is harmed, and acts at once.
  const harmed = (harm) => (act) => asked(t, client, api, `${name}-${asks++}`, async () => {
    await harm();
    await act();
  });
  const cut = await after(t, client, harmed(async () => line.cut()));
  let reload = client.reload;
  const back = async () => {
    await t.page.reload();
    await client.back(t.page);
  };
  if (!(await asked(t, client, api, `${name}-reload`, back))) {
    await client.say(t.page, 'hello');
    reload = (await shown(t.page)) ? 'empty until the next message, which shows all' : 'nothing';
  }
  let away = 0; // how long the server was, the last time
  const killed = async () => {
    const began = Date.now();
    await t.server.kill();
    await t.server.start();
    away = Date.now() - began;
  };
  let death = await after(t, client, harmed(killed));
  if (client.late) {
    // A server that takes too long to come back says nothing about one that does not.
    for (let n = 0; death !== 'continues' && away > 1000 && n < 4; n++) death = await after(t, client, harmed(killed));
    if (death === 'continues') {
      await late(t, client, api, `${name}-late`);
      death = client.late;
    }
  }
  return [cut, reload, death === cut && cut !== 'continues' ? 'as a cut' : death];
}

/** Writes down what was measured, and with which versions. CI compares that with the page. */
function note(name, cells) {
  const file = join(examples, 'browser/survives.json');
  const noted = JSON.parse(readFileSync(file, 'utf8'));
  const { from, packages } = clients[name];
  noted[name] = { cells, from, packages: installed(from, packages) };
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(Object.keys(clients).filter((each) => noted[each]).map((each) => [each, noted[each]])), null, 1)}\n`);
}

const rows = rowsOf('frontends.md', /^\| client \| what to paste /m);
const checks = {};
for (const [name, client] of Object.entries(clients)) {
  checks[name] = async (t) => {
    const line = new Line();
    const api = await line.to(new URL(t.server.api).port);
    try {
      const cells = await measured(t, client, line, api, name.replaceAll(/\W/g, ''));
      console.log(`| ${name} | ${cells.join(' | ')} |`);
      note(name, cells);
      assert.deepEqual(cells, rows.get(name)?.slice(1, 4));
    } finally {
      line.close();
    }
  };
}

// Chunks of the AI SDK are checked by its own transport, and TanStack's messages in a snapshot by its client.
const own = (text) => !/"type":"[A-Z]/.test(text) || (text.includes('"MESSAGES_SNAPSHOT"') && text.includes('"parts":'));
const faults = (text) => (own(text) ? [] : faultsOfEvent(text));
await drive({ home: pathToFileURL(`${dir}/`), checks, faults });
