// A person at a feature on the page.
import assert from 'node:assert/strict';
import { features } from './features.mjs';

// CopilotKit connects to the thread, and ignores what is typed and changed before.
const connected = "performance.getEntriesByType('resource').some((e) => e.name.endsWith('/connect'))";

const box = 'textarea[data-testid=copilot-chat-textarea]';

/** A feature on the page, on a thread of its own. */
export class Visit {
  constructor(id, t, name) {
    Object.assign(this, { id, t, feature: features[id], thread: `${id}-${name.replace(/\W+/g, '-')}-${Date.now()}` });
  }

  async say() {
    const { page, pages, server, dir } = this.t;
    const query = new URLSearchParams({ feature: this.feature.agent ?? this.id, thread: this.thread, server: `${server.api}/copilotkit` });
    await page.goto(`${pages}?${query}`);
    await page.until(connected);
    await page.until(`document.querySelector('${box}')`);
    await this.feature.prepare?.(page, dir);
    await page.run(`document.querySelector('${box}').focus()`);
    await page.type(this.feature.say);
    await page.until(`document.querySelector('${box}').value === ${JSON.stringify(this.feature.say)}`);
    await page.press('Enter');
  }

  /** Does what a person does, if the page waits for one, after something else. */
  async answer(first = async () => {}) {
    const { page } = this.t;
    const { asks, act } = this.feature;
    if (!asks) return;
    await page.until(asks);
    await first();
    await page.until(asks);
    await act(page);
  }

  /** Waits for the end, on the page and on the server, and loads the page again. */
  async end() {
    const { page, server, complaints } = this.t;
    const { shown, history } = this.feature;
    await page.until(shown, 30);
    const { status, outcome } = await server.ended(this.thread);
    assert.deepEqual([status, outcome], ['idle', 'success']);
    const { state } = await server.get(`/copilotkit/threads/${this.thread}/state`);
    history(await server.messages(this.thread), state);
    await page.reload();
    await page.until(shown);
    // A browser says late that a server was not there.
    assert.deepEqual(complaints.filter((text) => !/ERR_|Failed to load resource/.test(text)), []);
    complaints.length = 0;
  }
}
