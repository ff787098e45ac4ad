// The pictures of Studio in the README and in docs/studio.md, in both themes: an answer that
// outlived its process, a rewind, the inspector of a run, and the overview.
//
//   node scripts/screenshot.mjs path/to/holdfast path/to/images
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from '../web/test/cdp.mjs';
import { chromium, serve } from '../web/test/harness.mjs';
import { screen } from '../web/test/screen.mjs';

const [binary, images] = process.argv.slice(2);
if (!images) throw new Error('usage: node scripts/screenshot.mjs path/to/holdfast path/to/images');
const program = chromium();
if (!program) throw new Error('there is no Chromium here: apt-get install chromium, or set CHROMIUM');
mkdirSync(images, { recursive: true });

/** The most bytes that a picture may have. */
const most = 200_000;

const server = await serve(binary, { env: { HOLDFAST_DEMO_DELAY: '3ms', HOLDFAST_DEMO_KILL: 'true' }, args: ['--lease', '1s'] });
server.journal = join(server.dir, 'journal');
await server.start({ args: ['--demo-journal', server.journal] });
const browser = launch(program);
try {
  const s = await screen(browser);
  const size = { width: 1280, height: 800 };
  const shoot = async (name) => {
    for (const dark of [false, true]) {
      await s.look({ ...size, dark });
      await s.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: 0, y: 0 });
      await s.until('(await finder.still(), true)');
      const file = join(images, `studio-${name}-${dark ? 'dark' : 'light'}.png`);
      await s.shoot(file);
      const { size: bytes } = statSync(file);
      if (bytes > most) throw new Error(`${file} has ${bytes} bytes; ${most} are enough`);
      console.log(`${file}: ${bytes} bytes`);
    }
    await s.look(size);
  };
  await s.look(size);
  await s.goto(server.base);
  await s.see('textbox', 'Message');

  // A run that goes on after its process has died in the middle of its answer.
  await s.say('charge 2');
  await s.busy();
  await s.idle();
  await s.say('slow 90');
  await s.until("(finder.all('article', 'Assistant').at(-1)?.textContent.match(/word-/g) ?? []).length > 34");
  await s.click('button', 'Kill the server');
  await s.click('button', 'Kill it');
  await s.reads(/The run went on/, 'region', 'The kill of the server');
  await s.idle();
  await s.run('document.activeElement.blur()');
  await shoot('seam');
  await s.click('button', 'Dismiss');

  await s.click('link', /^Checkpoint \d+: .* step 1 of/);
  await s.click('button', 'Rewind…');
  await s.reads(/have already changed something outside/, 'dialog');
  await shoot('rewind');
  await s.key('Escape');
  await s.click('button', 'Back to now');

  await s.click('link', 'New thread');
  await s.until("location.hash === '#/'");
  await s.say('plan 4 steps');
  await s.busy();
  await s.idle();
  await s.click('button', 'Show the inspector');
  await s.click('tab', 'Run');
  await s.until("!document.querySelector('[aria-busy=true]')");
  await shoot('inspector');

  await s.click('link', 'Operate');
  await s.see('heading', 'Figures');
  await s.until("!document.querySelector('[aria-busy=true]')");
  await shoot('overview');
} finally {
  await browser.close();
  await server.close();
}
