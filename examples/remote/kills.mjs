// Kills the agent, the server, and both, at random moments of runs, and checks that each run ends with all
// that it has to say, and books at most once. HOLDFAST is the server's program; RUNS says how many runs.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const here = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), 'remote-'));
const bookings = join(folder, 'bookings.txt');
writeFileSync(bookings, '');
const [agentPort, port] = [18000 + (process.pid % 1000), 19000 + (process.pid % 1000)];
const base = `http://localhost:${port}`;
const runs = Number(process.env.RUNS ?? 9);

const programs = {
  agent: () => spawn(process.execPath, [join(here, 'agent.mjs')],
    { env: { ...process.env, PORT: agentPort, BOOKINGS: bookings, PACE: 15 }, stdio: 'ignore' }),
  server: () => spawn(process.env.HOLDFAST ?? 'holdfast',
    ['--addr', `localhost:${port}`, '--config', join(here, 'holdfast.yaml'), '--store', `file:${join(folder, 'data')}`],
    { env: { ...process.env, AGENT_URL: `http://localhost:${agentPort}/` }, stdio: 'ignore' }),
};
const alive = { agent: programs.agent(), server: programs.server() };

// kill ends a program as a crash would, and starts it again.
async function kill(name) {
  const ended = new Promise((resolve) => alive[name].once('exit', resolve));
  alive[name].kill('SIGKILL');
  await ended;
  alive[name] = programs[name]();
}

// ask asks the server until it is there.
async function ask(path, options) {
  for (let tries = 0; ; tries++) {
    try {
      return await fetch(base + path, options);
    } catch (error) {
      if (tries > 200) throw error;
      await pause(50);
    }
  }
}

const text = (m) => (typeof m.content === 'string' ? m.content : '');

// ended returns the messages of a thread once nothing runs on it.
async function ended(thread) {
  for (let tries = 0; tries < 600; tries++) {
    const response = await ask(`/threads/${thread}`);
    const state = response.ok ? await response.json() : {};
    if (response.ok && state.status !== 'running') {
      const history = await (await ask(`/threads/${thread}/messages`)).json();
      return { status: state.status, messages: history.messages ?? history };
    }
    await pause(50);
  }
  throw new Error(`${thread} does not end`);
}

let wrong = 0;
try {
  for (let n = 0; n < runs; n++) {
    const thread = `t${n}`;
    const victims = [['agent'], ['server'], ['agent', 'server']][n % 3];
    const body = { threadId: thread, runId: 'r', messages: [{ id: 'u', role: 'user', content: 'to Zermatt' }] };
    const posted = await ask('/runs', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    });
    const read = posted.text().catch(() => '');
    const after = Math.floor(Math.random() * 700);
    await pause(after);
    await Promise.all(victims.map(kill));
    await read;
    const { status, messages } = await ended(thread);
    const said = messages.filter((m) => m.role === 'assistant').map(text).join('|');
    const booked = readFileSync(bookings, 'utf8').split('\n').filter(Boolean).length - n;
    const twice = ['First I look', 'There is one', 'Your seat is booked'].filter((s) => said.split(s).length !== 2);
    if (status !== 'idle' || twice.length > 0 || booked !== 1) {
      wrong++;
      console.log(`not ok: ${victims.join(' and ')} killed after ${after} ms: ${status}, ${booked} bookings, ${said}`);
    } else {
      console.log(`ok: ${victims.join(' and ')} killed after ${after} ms, ${messages.length} messages`);
    }
  }
} finally {
  for (const one of Object.values(alive)) one.kill('SIGKILL');
}
console.log(`${runs - wrong} of ${runs} runs ended as they should`);
process.exit(wrong === 0 ? 0 : 1);
