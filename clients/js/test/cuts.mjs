// The campaign: runs through a proxy that cuts connections at random bytes, until there were
// as many cuts as asked for, with both versions of the official client in both dialects. It
// prints a table, and fails if a transcript differs from the server's.
//
//   HOLDFAST_BINARY=… node test/cuts.mjs [cuts] [seed]
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const [cuts = '1000', seed = '1'] = process.argv.slice(2);

/** Runs the campaign of one combination, in this process. */
async function combination(dialect) {
  const { freePort, HoldfastAgent, plain, say, Server, warnings, watch } = await import('./client.mjs');
  const { CuttingProxy, seeded } = await import('./proxy.mjs');
  const server = await new Server(await freePort(), ['--demo-delay=1ms']).start();
  const random = seeded(Number(seed));
  const proxy = new CuttingProxy(server.port, random);
  const url = `${await proxy.listen()}/runs`;

  class Dialect extends HoldfastAgent {
    requestInit(input) {
      const { protocolVersion: _, ...rest } = input;
      return super.requestInit(dialect === '1.0' ? { protocolVersion: '1.0', ...rest } : rest);
    }
  }

  const words = ['slow 60 words please', 'plan 3 steps', 'think about durability', 'ask me for a name'];
  const row = { runs: 0, attaches: 0, cuts: 0, wrong: 0, warnings: 0 };
  const judge = async (agent, errors) => {
    const want = JSON.stringify(await server.history(agent.threadId));
    if (errors.length > 0 || JSON.stringify(sorted(plain(agent.messages))) !== JSON.stringify(sorted(JSON.parse(want)))) {
      row.wrong++;
      process.stderr.write(`${JSON.stringify({ errors, shown: agent.messages }, null, 1)}\nserver: ${want}\n`);
    }
  };
  while (proxy.cuts < Number(cuts)) {
    const agent = new Dialect({ url, maxDelay: 2 });
    const word = words[row.runs++ % words.length];
    const page = new Dialect({ url, maxDelay: 2, threadId: agent.threadId });
    let attached;
    const first = await say(agent, word, {
      seen: (event) => {
        if (!attached && event.type !== 'RUN_STARTED') attached = watch((s) => page.connectAgent({}, s)).catch((error) => ({ error }));
      },
    }).catch((error) => ({ error }));
    const second = await attached;
    await judge(agent, [first.error].filter(Boolean));
    if (second) {
      row.attaches++;
      await judge(page, [second.error].filter(Boolean));
    }
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { answer: 'Vienna' } }));
    if (resume.length > 0) {
      const third = await say(agent, undefined, { resume }).catch((error) => ({ error }));
      await judge(agent, [third.error].filter(Boolean));
    }
  }
  row.cuts = proxy.cuts;
  row.warnings = warnings.length;
  for (const warning of warnings) process.stderr.write(`${warning}\n`);
  proxy.close();
  await server.stop();
  process.stdout.write(`${JSON.stringify(row)}\n`);
  process.exit(row.wrong + row.warnings > 0 ? 1 : 0);
}

/** Members in one order: the two sides may write them in another. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

if (process.env.CUTS_DIALECT) {
  await combination(process.env.CUTS_DIALECT);
} else {
  const table = [];
  for (const client of ['1.0.0', '0.0.59']) {
    for (const dialect of ['1.0', 'none']) {
      const { status, stdout } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), String(Math.ceil(Number(cuts) / 4)), seed], {
        encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, AGUI_CLIENT: client, CUTS_DIALECT: dialect },
      });
      if (status !== 0) process.exitCode = 1;
      const row = stdout ? JSON.parse(stdout) : { runs: 0, attaches: 0, cuts: 0, wrong: 'ended', warnings: '' };
      table.push([client, dialect, row.runs, row.attaches, row.cuts, row.wrong, row.warnings]);
    }
  }
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  process.stdout.write(line(['client', 'dialect', 'runs', 'attaches', 'cuts', 'wrong transcripts', 'warnings']) + line(Array(7).fill('---')) + table.map(line).join(''));
}
