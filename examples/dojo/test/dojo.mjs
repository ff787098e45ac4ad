// The dojo's features, against a real server: with the official client, and on the page in a real
// browser, where the page is reloaded and the server killed in the middle of each of them.
//
//   npm test -- path/to/dojo [redis://…]
//
// HARMS is at how many places of an answer each is done, besides while a person is waited for; the
// default is 1. With HOLDFAST_TEST_PART=N, as in CI, both are done once in one feature: another one for
// every other N, because the N between them are for the other store.
import assert from 'node:assert/strict';
import { drive } from '../../browser/harness.mjs';
import { converse } from './client.mjs';
import { features } from './features.mjs';
import { Visit } from './visit.mjs';

const places = Number(process.env.HARMS ?? 1);

const harms = {
  'a reload': ({ page }) => page.reload(),
  async 'kill -9'({ server }) {
    await server.kill();
    await server.start();
  },
};

/** Goes through a feature undisturbed, and returns how many frames come until a person is asked, and in all. */
async function undisturbed(id, t) {
  const { frames, page } = t;
  const before = frames.count;
  const visit = new Visit(id, t, 'undisturbed');
  await visit.say();
  if (visit.feature.meanwhile) await page.until(visit.feature.meanwhile);
  let asked = Infinity;
  await visit.answer(() => { asked = frames.count - before; });
  await page.until(visit.feature.shown, 30);
  const all = frames.count - before;
  await visit.end();
  return { asked, all };
}

const checks = {
  async 'the official client'({ server }) {
    await Promise.all(Object.keys(features).map((id) => converse(id, server)));
  },
};

/** Both at once, in the middle of whatever feature. */
const sample = (id) => async (t) => {
  const visit = new Visit(id, t, 'sample');
  const middle = t.frames.reaches(t.frames.count + 5);
  await visit.say();
  await middle;
  await harms['a reload'](t);
  await t.page.until("document.querySelector('[data-testid=copilot-user-message]')");
  await harms['kill -9'](t);
  await visit.answer();
  await visit.end();
};

const part = process.env.HOLDFAST_TEST_PART;
const names = Object.keys(features);
if (part) {
  const id = names[Math.floor(part / 2) % names.length];
  checks[`${id}: a reload and kill -9`] = sample(id);
}
for (const id of part ? [] : names) {
  let frames;
  checks[id] = async (t) => { frames = await undisturbed(id, t); };
  for (const [name, harm] of Object.entries(harms)) {
    for (let place = 1; place <= places; place++) {
      checks[`${id}: ${name} at ${place} of ${places}`] = async (t) => {
        const visit = new Visit(id, t, `${name}-${place}`);
        const after = Math.ceil((frames.all * place) / (places + 1));
        const middle = t.frames.reaches(t.frames.count + after);
        await visit.say();
        if (after > frames.asked) await visit.answer();
        await middle;
        await harm(t);
        if (after <= frames.asked) await visit.answer();
        await visit.end();
      };
    }
    if (features[id].asks) {
      checks[`${id}: ${name} while a person is waited for`] = async (t) => {
        const visit = new Visit(id, t, `${name}-waiting`);
        await visit.say();
        await visit.answer(() => harm(t));
        await visit.end();
      };
    }
  }
}
await drive({ home: new URL('..', import.meta.url), checks, args: () => ['-pace', '15ms'] });
