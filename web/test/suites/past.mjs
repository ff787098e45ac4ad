// The past: checkpoints, forks, rewinds with their effects, records, replay.
import assert from 'node:assert/strict';
import { join } from 'node:path';

export const setup = { first: ({ dir }) => ({ args: ['--demo-journal', join(dir, 'journal')] }) };

const charges = (s) => s.run("document.querySelectorAll('details[data-status=done]').length");

export default {
  async 'two charges are made'({ s, server }) {
    await s.goto(server.base);
    await s.say('charge 2');
    await s.busy();
    await s.idle();
    assert.equal(await charges(s), 2);
    await s.see('region', 'Checkpoints');
    await s.see('link', /^Checkpoint \d+: .* step 4 of/);
  },
  async 'one can look at each checkpoint, with the keyboard'({ s, shot }) {
    await s.run('document.activeElement.blur()');
    await s.key('[');
    await s.see('region', 'A look at the past');
    await s.gone('textbox', 'Message');
    await s.key('[');
    await s.reads(/step 3 of/, 'region', 'A look at the past');
    await s.until("document.querySelectorAll('details[data-status=done]').length === 1 || finder.all('article', 'Assistant').length < 3");
    await s.axe('a look at a checkpoint');
    await shot('past');
    const address = await s.run('location.href');
    await s.reload();
    await s.reads(/step 3 of/, 'region', 'A look at the past');
    assert.equal(await s.run('location.href'), address);
    await s.key(']');
    await s.reads(/step 4 of/, 'region', 'A look at the past');
    await s.key('Escape');
    await s.gone('region', 'A look at the past');
    await s.see('textbox', 'Message');
    assert.equal(await charges(s), 2);
  },
  async 'a rewind lists what has happened outside, and asks about each'({ s, shot }) {
    await s.click('link', /^Checkpoint \d+: .* step 1 of/);
    await s.click('button', 'Rewind…');
    await s.see('dialog', /^Rewind to step 1/);
    await s.reads(/2 calls have already changed something outside/, 'dialog', /^Rewind to/);
    assert.equal(await s.count('group', 'If the model calls charge_card like this again'), 2);
    await s.axe('a rewind');
    await shot('rewind-light');
    await s.look({ dark: true });
    await s.axe('a rewind, dark');
    await shot('rewind-dark');
    await s.look({ width: 320, height: 640 });
    await s.narrow('a rewind');
    await s.axe('a rewind, narrow');
    await s.look();
    await s.click('radio', 'Let it run again', { at: 1 });
    await s.key('Escape');
    await s.gone('dialog', /^Rewind to/);
    await s.click('button', 'Rewind…');
    await s.click('button', 'Rewind', { at: -1 });
    await s.gone('dialog', /^Rewind to/);
    await s.gone('region', 'A look at the past');
    await s.idle();
  },
  async 'results are used again, and nothing is charged twice'({ s, server }) {
    const { readFileSync } = await import('node:fs');
    const count = () => readFileSync(join(server.dir, 'journal'), 'utf8').split('\n').filter((l) => l.includes('charge_card')).length;
    const before = count();
    await s.until("document.querySelectorAll('details[data-status=done]').length === 2 || finder.all('button', 'Continue').length > 0");
    if (await s.count('button', 'Continue')) await s.click('button', 'Continue');
    await s.until("document.querySelectorAll('details[data-status=done]').length === 2");
    await s.idle();
    assert.equal(count(), before, 'recorded results were used');
  },
  async 'what was left by going back can be gone to again'({ s }) {
    await s.see('link', /left by going back/);
    await s.click('link', /left by going back/, { at: -1 });
    await s.reads(/left by going back/, 'region', 'A look at the past');
    await s.axe('what was left by going back');
    await s.click('button', 'Back to now');
  },
  async 'a place is marked, and a fork begins there'({ s }) {
    await s.click('button', 'From where the thread stands');
    await s.click('menuitem', 'Mark this place…');
    await s.see('dialog', 'Mark this place');
    await s.axe('a mark');
    await s.until("document.activeElement.matches('input')");
    await s.type('paid');
    await s.key('Enter');
    await s.see('link', /paid/);
    const before = await s.thread();
    await s.click('link', /^Checkpoint \d+: .* step 1 of/);
    await s.click('button', 'Fork from here');
    await s.see('dialog', /^Fork from step 1/);
    await s.axe('a fork');
    await s.click('button', 'Fork', { at: -1 });
    await s.until(`location.hash.startsWith('#/threads/') && !location.hash.includes(${JSON.stringify(before)})`);
    await s.gone('dialog', /^Fork from/);
    await s.see('textbox', 'Message');
    await s.idle();
    await s.say('plan 3 steps');
    await s.idle();
    await s.reads(/All 3 steps are done/);
  },
  async 'every record is there: grouped, searched, and linked to its message'({ s, shot }) {
    await s.click('button', 'Show its records', { at: -1 });
    await s.see('region', /^Record \d+/);
    await s.axe('a record');
    await shot('records');
    await s.look({ dark: true });
    await s.axe('a record, dark');
    await s.look();
    assert.match(await s.run('location.hash'), /record=/);
    await s.reload();
    await s.see('region', /^Record \d+/);
    await s.click('button', 'Raw');
    await s.see('region', 'Raw JSON');
    await s.click('button', 'In the conversation');
    await s.until("document.querySelector('.conversation-row[data-active]')");
    await s.click('button', 'As it was here');
    await s.reads(/record \d+/, 'region', 'A look at the past');
    await s.click('button', 'Back to now');
    await s.click('button', 'Close the record');
    await s.fill('searchbox', 'Search in the records', 'update_plan');
    await s.reads(/[1-9]\d*\s*records found/, 'status', /records found/);
    await s.axe('a search');
    await s.fill('searchbox', 'Search in the records', 'nobody has ever said this');
    await s.reads(/No record matches/);
    await s.axe('a search without success');
    await s.click('button', 'Clear the search');
  },
  async 'states, runs, checkpoints and tools have tabs'({ s, shot }) {
    for (const tab of ['State', 'Run', 'Checkpoints', 'Tools', 'Events']) {
      if (await s.count('tab', tab) === 0) throw new Error(`there is no tab ${tab}`);
      await s.click('tab', tab);
      await s.until(`finder.one('tab', ${JSON.stringify(tab)}).ariaSelected === 'true'`);
      await s.until("!finder.one('tabpanel')?.querySelector('[aria-busy=true]')");
      await s.axe(`the inspector: ${tab}`);
      await shot(`inspector-${tab.toLowerCase()}-light`);
      await s.look({ dark: true });
      await s.axe(`the inspector: ${tab}, dark`);
      await shot(`inspector-${tab.toLowerCase()}-dark`);
      await s.look();
    }
    await s.click('tab', 'State');
    await s.reads(/A plan of 3 steps/, 'tabpanel');
    await s.click('tab', 'Events');
  },
  async 'the log is replayed, and nothing is asked of the server'({ s }) {
    await s.send('Network.enable');
    const end = await s.run("finder.all('article', 'Assistant').length");
    const asked = [];
    const hear = (m) => m.sessionId === s.session && m.method === 'Network.requestWillBeSent' && m.params.request.method !== 'GET' && asked.push(m.params.request.url);
    s.listen(hear);
    await s.click('button', 'Max');
    await s.click('button', 'Replay from the log');
    await s.see('region', 'A look at the past');
    await s.gone('region', 'A look at the past');
    assert.equal(await s.run("finder.all('article', 'Assistant').length"), end);
    await s.click('button', 'One record back');
    await s.reads(/record \d+/, 'region', 'A look at the past');
    await s.until('/at=/.test(location.hash)');
    await s.click('button', 'Now');
    await s.gone('region', 'A look at the past');
    assert.deepEqual(asked, [], 'a replay executes nothing');
  },
};
