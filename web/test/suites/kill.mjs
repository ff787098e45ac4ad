// The kill button: it really kills the process, and the run goes on at the word.
import assert from 'node:assert/strict';
import { answer, some, whole } from './talk.mjs';

export const setup = { env: { HOLDFAST_DEMO_KILL: 'true' }, args: ['--lease', '1s'] };

export default {
  async 'it is explained once, and then kills in mid-answer'({ s, server, shot }) {
    await s.goto(server.operator());
    await s.see('textbox', 'Message');
    // The check takes longer than an answer on a busy machine; a person who does not confirm is asked again.
    await s.say('time');
    await s.idle();
    await s.click('button', 'Kill the server');
    await s.see('alertdialog', 'Kill the server?');
    await s.axe('what the kill button does');
    await s.key('Escape');
    await s.gone('alertdialog', 'Kill the server?');
    await s.say('slow 200');
    await s.until(`finder.all('article', 'Assistant').length > 1 && ${some(8)}`);
    await s.click('button', 'Kill the server');
    await s.see('alertdialog', 'Kill the server?');
    const before = await s.run(answer());
    await s.click('button', 'Kill it');
    await s.see('region', 'The kill of the server');
    await s.reads(/The run went on/, 'region', 'The kill of the server');
    await s.see('button', /died here.* went on/);
    assert.ok((await s.run(answer())).startsWith(before.slice(0, 60)), 'nothing that was shown is gone');
    await s.idle();
    await whole(s, 200);
    await s.axe('after a kill');
    await s.look({ dark: true });
    await s.axe('after a kill, dark');
    await shot('killed');
    await s.look();
    await s.click('button', 'Dismiss');
    await s.gone('region', 'The kill of the server');
  },
  async 'the second time nobody is asked, and a server at rest loses nothing'({ s }) {
    await s.click('button', 'Kill the server');
    await s.reads(/Nothing was lost/, 'region', 'The kill of the server');
    assert.equal(await s.count('alertdialog'), 0);
    await s.say('time');
    await s.idle();
    assert.equal(await s.count('article', 'You'), 3);
  },
};
