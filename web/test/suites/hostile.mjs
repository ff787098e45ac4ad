// The texts of others are shown, and do nothing: in titles, messages, arguments and addresses.
import assert from 'node:assert/strict';

export const setup = { env: { HOLDFAST_DEMO_DELAY: '0s' } };

/** Sends something without a page, and returns the answer to its end. */
async function send(method, address, body) {
  const r = await fetch(address, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: AbortSignal.timeout(60_000) });
  const said = await r.text();
  assert.equal(r.status, 200, said);
  return said;
}

/** Sends a conversation that a client says it has had, and then one more message. */
async function post(server, threadId, messages, say = 'time') {
  const all = [...messages, { role: 'user', content: say }].map((m, i) => ({ id: `${threadId}-${i}`, ...m }));
  const body = { threadId, runId: `${threadId}-run`, messages: all, state: {}, tools: [], context: [], forwardedProps: {} };
  assert.match(await send('POST', `${server.base}agents/demo/runs`, body), /RUN_FINISHED/);
}

const markup = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><svg onload="window.hacked=3"></svg><iframe src="https://evil.example/"></iframe><style>*{display:none}</style><form action="https://evil.example/"><button>Send</button></form>';
const links = '[a](javascript:window.hacked=4) [b](data:text/html,<script>window.hacked=5</script>) [c](vbscript:x) [d](https://evil.example/%E0%A4%A) [e](//evil.example) [f](  java\nscript:alert(1)) <https://evil.example/?a=%zz> ![g](https://evil.example/track.png) ![h](javascript:window.hacked=6)';
const bidi = '\u202Egnp.exe\u202C \u2066x\u2069 \u0000\u0007\u001b[31mred\u001b[0m \u200B';

/** Long things that cost a naive page seconds. */
const heavy = {
  quotes: '>'.repeat(4000),
  lists: Array.from({ length: 300 }, (_, i) => `${'  '.repeat(i)}- ${i}`).join('\n'),
  brackets: '['.repeat(5000) + ']'.repeat(5000),
  stars: '*a **b '.repeat(3000),
  ticks: '`'.repeat(3001) + ' x ' + '``'.repeat(1500),
  table: ['', '-', ...Array.from({ length: 200 }, () => 'cell')].map((c) => `|${`${c}|`.repeat(60)}`).join('\n'),
  line: 'x'.repeat(100_000),
  html: '<div>'.repeat(4000),
};

async function harmless(s, state) {
  assert.equal(await s.run('window.hacked'), undefined, state);
  assert.deepEqual(await s.run("[...document.querySelectorAll('.region script, .region iframe, .region style, .region form[action], .region [onerror], .region [onload]')].map((e) => e.outerHTML.slice(0, 100))"), [], state);
  assert.deepEqual(await s.run("[...document.querySelectorAll('.region a[href]')].map((a) => a.getAttribute('href')).filter((h) => !/^(#|https?:|mailto:|data:(?!text\\/html)|blob:)/.test(h))"), [], state);
  assert.deepEqual(await s.run("[...document.querySelectorAll('.region img')].map((i) => i.getAttribute('src')).filter((h) => !/^(\\.\\/ui|data:image|blob:)/.test(h ?? ''))"), [], state);
}

export default {
  async 'markup and links of others are text'({ s, server, shot }) {
    const others = [];
    await s.send('Network.enable');
    s.listen((m) => m.sessionId === s.session && m.method === 'Network.requestWillBeSent' && !m.params.request.url.startsWith(server.base) && !/^(data|blob):/.test(m.params.request.url) && others.push(m.params.request.url));
    await post(server, 'markup', [{ role: 'user', content: markup + links + bidi }, { role: 'assistant', content: `${markup}\n\n${links}\n\n${bidi}` }]);
    await send('PATCH', `${server.base}threads/markup`, { title: `${markup.slice(0, 60)}${'\u202E'}gnp.exe` });
    await s.goto(`${server.base}#/threads/markup`);
    await s.see('article', 'Assistant', 2);
    await harmless(s, 'markup');
    assert.deepEqual(others, [], 'nothing is loaded from elsewhere');
    await s.axe('hostile markup');
    await shot('hostile');
    await s.look({ width: 320, height: 640 });
    await s.narrow('hostile markup');
    await s.look();
    await s.say('help');
    await s.idle();
    await s.reads(/scripted, with no key/);
  },
  async 'names of tools are text'({ s, server, shot }) {
    const names = [markup.slice(0, 60), bidi, 'n'.repeat(2000), '__proto__', '../../x?y#z', ' '];
    const toolCalls = names.map((name, i) => ({ id: `call-${i}`, type: 'function', function: { name, arguments: '{"a":1}' } }));
    await post(server, 'names', [{ role: 'user', content: 'x' }, { role: 'assistant', content: '', toolCalls }, ...names.map((_, i) => ({ role: 'tool', toolCallId: `call-${i}`, content: markup }))]);
    await s.goto(`${server.base}#/threads/names?tab=events`);
    await s.until("document.querySelectorAll('details[data-status]').length === 7");
    await s.until("finder.all('log', 'Records').length > 0");
    await harmless(s, 'names');
    await s.axe('hostile names of tools');
    await shot('names');
    await s.click('tab', 'Tools');
    await s.until("!finder.one('tabpanel')?.querySelector('[aria-busy=true]')");
    await s.look({ width: 320, height: 640 });
    await s.narrow('hostile names of tools');
    await s.look();
    await s.click('button', 'Hide the inspector');
  },
  async 'long and deep things freeze nothing'({ s, server }) {
    for (const [name, text] of Object.entries(heavy)) {
      await post(server, name, [{ role: 'user', content: text }, { role: 'assistant', content: text }]);
      const began = performance.now();
      await s.run(`location.hash = '#/threads/${name}'`);
      await s.until(`location.hash === '#/threads/${name}'`);
      await s.see('article', 'Assistant', 2);
      await s.fill('textbox', 'Message', 'typed');
      assert.ok(await s.run('document.documentElement.scrollWidth <= innerWidth'), `${name} is wider than the page`);
      assert.ok(performance.now() - began < 20_000, `${name} froze the page`);
      await s.fill('textbox', 'Message', '');
    }
    await harmless(s, 'heavy');
  },
  async 'arguments and results of tools are data'({ s }) {
    await s.click('link', 'New thread');
    await s.until("location.hash === '#/'");
    const args = { term: `${markup}${links}${bidi}`, __proto__x: { constructor: { prototype: { polluted: true } } } };
    await s.say(`use lookup ${JSON.stringify(args).replace('__proto__x', '__proto__')} and lookup ${JSON.stringify({ term: 'y'.repeat(20_000) })}`);
    await s.see('button', /^lookup/, 1);
    await s.idle();
    await s.click('button', /^lookup/);
    await s.see('region', 'Arguments');
    await harmless(s, 'arguments');
    assert.equal(await s.run('({}).polluted'), undefined);
    await s.axe('hostile arguments');
    await s.click('button', 'Show its records');
    await s.see('region', /^Record/);
    await harmless(s, 'records');
    await s.axe('hostile records');
    await s.click('button', 'Raw');
    await s.see('region', 'Raw JSON');
    await s.narrow('hostile records');
    await s.click('button', 'Hide the inspector');
  },
  async 'addresses that nobody has made lead somewhere'({ s, server }) {
    await s.goto(server.base);
    for (const hash of ['#/threads/%E0%A4%A', '#/threads/..%2f..%2fsettings', '#/threads/nobody?at=<script>&tab=zzz', '#/operate/nothing', '#/%', '#/threads/markup/runs/none?at=99999-x&record=zz&checkpoint=../x', `#/${'x/'.repeat(2000)}`]) {
      await s.run(`location.hash = ${JSON.stringify(hash)}`);
      await s.see('main');
      await s.until("!document.querySelector('[aria-busy=true]')");
      await harmless(s, hash);
    }
    s.complaints.splice(0, s.complaints.length, ...s.complaints.filter((c) => !/status of 40[04]/.test(c)));
    await s.goto(server.base);
    await s.see('textbox', 'Message');
  },
};
