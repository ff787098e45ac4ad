// Makes pictures of the features, to see what a change of the page looks like. docs/images has one of them.
//
//   PICTURES=folder node test/pictures.mjs path/to/dojo
//
// ONLY=word makes those of the features that have it.
import { join } from 'node:path';
import { drive } from '../../browser/harness.mjs';
import { features } from './features.mjs';
import { Visit } from './visit.mjs';

const shoot = async (page, name) => {
  await page.run("new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 600)); })");
  await page.shoot(join(process.env.PICTURES, `dojo-${name}.png`));
};

const checks = {};
for (const id of Object.keys(features)) {
  checks[id] = async (t) => {
    await t.page.look({ width: 1280, height: 800 });
    const visit = new Visit(id, t, 'picture');
    await visit.say();
    await visit.answer(() => shoot(t.page, `${id}-asks`));
    await t.page.until(visit.feature.shown, 30);
    await shoot(t.page, id);
  };
}
await drive({ home: new URL('..', import.meta.url), checks, args: () => ['-pace', '5ms'] });
