// Accessibility of a component, as axe sees it. jsdom has no layout and no colours: contrast
// and sizes of targets are looked at in a real browser.
import axe from 'axe-core';
import { expect } from 'vitest';

/** Fails with what axe has against the element, which is the whole document by default. */
export async function expectAccessible(element: Element = document.body): Promise<void> {
  const { violations } = await axe.run(element, {
    rules: { 'color-contrast': { enabled: false }, region: { enabled: false }, 'page-has-heading-one': { enabled: false }, 'landmark-one-main': { enabled: false } },
  });
  const told = violations.map((v) => `${v.id}: ${v.help}\n${v.nodes.map((n) => `  ${n.html}`).join('\n')}`);
  expect(told).toEqual([]);
}
