// The server as its operator sees it, and everything with the keyboard. All of it below a
// path prefix, as behind a proxy.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { eventually } from '../harness.mjs';

const prefix = '/studio/';
let proxy;

/** Forwards what is below the prefix. */
function forward(server) {
  return new Promise((done) => {
    const { port } = new URL(server.base);
    proxy = createServer((req, res) => {
      if (!req.url.startsWith(prefix)) {
        res.writeHead(404).end();
        return;
      }
      const on = request({ host: 'localhost', port, method: req.method, path: req.url.slice(prefix.length - 1), headers: req.headers }, (answer) => {
        res.writeHead(answer.statusCode, answer.headers);
        answer.pipe(res);
      });
      on.on('error', () => res.destroy());
      res.on('close', () => on.destroy());
      req.pipe(on);
    }).listen(0, 'localhost', () => done(`http://localhost:${proxy.address().port}${prefix}`));
  });
}

const parts = ['Overview', 'Agents', 'All threads', 'Settings'];

export default {
  async 'a fresh server says what will be here'({ s, server }) {
    const base = await forward(server);
    await s.goto(server.operator(base));
    await s.goto(`${base}#/operate`);
    await s.reads(/Nothing has run yet/);
    await s.axe('a fresh overview');
  },
  async 'every part of it can be read, in both themes and on a small screen'({ s, shot }) {
    await s.click('link', 'Begin a thread');
    await s.say('plan 3 steps');
    await s.busy();
    await s.idle();
    await s.say('fail');
    await s.see('button', 'Continue');
    await s.click('link', 'Operate');
    await s.reads(/model_failed/);
    for (const part of parts) {
      await s.click('link', part);
      await s.see('link', part);
      await s.until("!document.querySelector('[aria-busy=true]')");
      const name = part.toLowerCase().replace(' ', '-');
      await s.axe(part);
      await shot(`${name}-light`);
      await s.look({ dark: true });
      await s.axe(`${part}, dark`);
      await shot(`${name}-dark`);
      await s.look({ width: 320, height: 640 });
      await s.narrow(part);
      await s.axe(`${part}, narrow`);
      await s.look();
    }
  },
  async 'a tool runs by hand, with a form from its schema'({ s, shot }) {
    await s.click('link', 'Agents');
    await s.click('link', /^calculate/);
    await s.see('button', 'Run it');
    await s.click('button', 'Run it');
    await s.until("document.querySelector('.region-main [aria-invalid=true]')");
    await s.fill('textbox', /expression/i, '6 * 7');
    await s.click('button', 'Run it');
    await s.reads(/Returned[\s\S]*42/);
    await s.axe('a tool by hand');
    await shot('tool');
    await s.look({ width: 320, height: 640 });
    await s.narrow('a tool by hand');
    await s.look();
  },
  async 'a thread is exported and imported'({ s, server }) {
    await s.downloads(server.dir);
    await s.click('link', /^plan 3 steps/);
    await s.see('article', 'You');
    await s.click('button', 'More');
    await s.click('menuitem', 'Export');
    await s.reads(/Exported: \S+/);
    const name = /Exported: (\S+\.json)/.exec(await s.text())[1];
    const file = join(server.dir, name);
    await eventually(`${name} is saved`, () => existsSync(file));
    assert.match(readFileSync(file, 'utf8'), /All 3 steps are done/);
    await s.key('Control+k');
    await s.until("finder.name(document.activeElement) === 'Command'");
    await s.axe('the palette');
    await s.type('import a thread');
    await s.see('option', /^Import a thread/);
    await s.key('Enter');
    await s.see('dialog', 'Import a thread');
    await s.axe('an import');
    const { root } = await s.send('DOM.getDocument', { depth: -1 });
    const { nodeId } = await s.send('DOM.querySelector', { nodeId: root.nodeId, selector: 'input.import-file' });
    await s.send('DOM.setFileInputFiles', { nodeId, files: [file] });
    await s.fill('textbox', /^Id of the new thread/, 'copy-of-it');
    await s.axe('what is imported');
    await s.click('button', 'Import');
    await s.click('button', 'Open it');
    await s.until("location.hash.startsWith('#/threads/copy-of-it')");
    await s.reads(/All 3 steps are done/);
    await s.axe('a thread that was imported');
  },
  async 'everything is done with the keyboard'({ s }) {
    await s.key('Control+k');
    await s.until("finder.name(document.activeElement) === 'Command'");
    await s.type('new thread');
    await s.see('option', /^New thread/);
    await s.key('Enter');
    await s.until("location.hash === '#/'");
    await s.run('document.activeElement.blur()');
    await s.key('c');
    await s.until("finder.name(document.activeElement) === 'Message'");
    await s.type('parallel 3');
    await s.key('Enter');
    await s.busy();
    await s.idle();
    await s.run('document.activeElement.blur()');
    await s.key('j');
    await s.until("document.querySelector('.conversation-row[data-active]')");
    await s.key('i');
    await s.see('tab', 'Events');
    await s.key('[');
    await s.see('region', 'A look at the past');
    await s.key('Escape');
    await s.gone('region', 'A look at the past');
    await s.key('?');
    await s.see('dialog');
    await s.axe('the help');
    await s.key('Escape');
    await s.gone('dialog');
    await s.key('i');
    await s.gone('tab', 'Events');
  },
  async 'the tab key comes to everything, and shows where it is'({ s }) {
    await s.reload();
    await s.see('article', 'Assistant');
    await s.key('Tab');
    assert.equal(await s.focused(), 'Skip to the conversation');
    const walked = [];
    for (let i = 0; i < 80; i++) {
      await s.key('Tab');
      const [name, shown, tag] = await s.run(`(() => {
        const e = document.activeElement;
        const { outlineStyle, outlineWidth, boxShadow, borderColor } = getComputedStyle(e);
        const round = (e.closest('.composer, .threads-search') ?? e);
        return [finder.name(e) || e.placeholder || '', outlineStyle !== 'none' && outlineWidth !== '0px' || boxShadow !== 'none' || round !== e, e.tagName];
      })()`);
      if (tag === 'BODY' || name === 'Skip to the conversation') break;
      assert.ok(name, `something without a name has the focus: ${tag}`);
      assert.ok(shown, `nobody sees that ${name} has the focus`);
      walked.push(name);
    }
    for (const wanted of ['New thread', 'Search threads', 'Message', 'Conversation']) assert.ok(walked.includes(wanted), `${wanted} is not reached: ${walked.join(', ')}`);
    assert.equal(new Set(walked).size > 12, true, walked.join(', '));
  },
  async 'a server that is away is told of'({ s, server }) {
    await s.click('link', 'Operate');
    await s.see('heading', 'Figures');
    await server.kill();
    await s.reads(/The server does not answer\. These are its figures of/);
    await s.axe('an overview of a server that is away');
    await server.start();
    await s.until("!/does not answer/.test(document.body.innerText)");
    await s.click('link', 'New thread');
    await s.see('textbox', 'Message');
    proxy.closeAllConnections();
    proxy.close();
  },
};
