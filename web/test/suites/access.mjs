// A server with keys: who is asked for one, and what each role sees.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

const keys = {};

/** Makes a key; the server gets its hash. */
function make(program, user, roles) {
  const made = spawnSync(program, ['key', '--tenant', 'acme', '--user', user, '--roles', roles], { encoding: 'utf8', timeout: 60_000, killSignal: 'SIGKILL' });
  const said = made.stdout + made.stderr;
  keys[user] = /hf_\S+/.exec(said)?.[0];
  return /acme\/\S+sha256:\S+/.exec(said)?.[0] ?? assert.fail(`holdfast key: ${made.error?.message ?? said}`);
}

export const setup = { first: ({ program }) => ({ env: { HOLDFAST_API_KEYS: [make(program, 'alice', 'user'), make(program, 'olga', 'user,tenant_operator'), make(program, 'root', 'server_operator')].join(',') } }) };

async function enter(s, key) {
  await s.see('dialog', 'This server requires a key');
  await s.fill('textbox', 'API key', key);
  await s.key('Enter');
}

export default {
  async 'a key is asked for, and a wrong one is refused'({ s, server, shot }) {
    await s.goto(server.base);
    await s.see('dialog', 'This server requires a key');
    await s.axe('a key is asked for');
    await s.look({ dark: true });
    await s.axe('a key is asked for, dark');
    await s.look({ width: 320, height: 640 });
    await s.narrow('a key is asked for');
    await s.look();
    await enter(s, 'wrong');
    await s.reads(/That key was refused/, 'dialog');
    await shot('key');
    await enter(s, keys.alice);
    await s.gone('dialog');
    await s.say('ask me what is up');
    await s.see('button', 'Answer');
  },
  async 'without the role, what is missing is said'({ s }) {
    await s.click('link', 'Operate');
    await s.reads(/for server operators/);
    await s.axe('the overview without the role');
    for (const [part, said] of [['All threads', /for tenant operators/], ['Settings', /for server operators/]]) {
      await s.click('link', part);
      await s.reads(said);
    }
    await s.axe('settings without the role');
  },
  async 'an operator reads others’ threads, and changes nothing'({ server, open, shot }) {
    const s = await open();
    await s.goto(`${server.base}#/operate/threads`);
    await enter(s, keys.olga);
    await s.gone('dialog');
    await s.reads(/alice/, 'table');
    await s.axe('threads of all users');
    assert.equal(await s.count('link', 'Overview'), 0);
    assert.equal(await s.count('link', 'Settings'), 0);
    await s.click('link', 'ask me what is up');
    await s.reads(/You read a thread of alice, as an operator/);
    await s.see('article', 'You');
    assert.equal(await s.count('textbox', 'Message'), 0);
    assert.equal(await s.count('button', 'Answer'), 0);
    await s.axe('another user’s thread');
    await shot('other-user');
    await s.click('link', 'Your own');
    await s.see('textbox', 'Message');
    await s.shut();
  },
};
