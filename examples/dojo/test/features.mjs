// What the tests of the dojo say to each feature, what a person does, and what is there in the end:
// in the history, for every client, and on the page.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A picture of one pixel. */
export const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const shows = (words) => `document.querySelector('.talk').innerText.replace(/\\s+/g, ' ').includes(${JSON.stringify(words)})`;

/** The calls of a tool in a history; each has one result. */
function calls(messages, tool) {
  const made = messages.flatMap(({ toolCalls }) => toolCalls ?? []).filter((call) => call.function.name === tool);
  for (const { id } of made) assert.equal(messages.filter(({ toolCallId }) => toolCallId === id).length, 1, `results of ${tool}`);
  return made.map((call) => JSON.parse(call.function.arguments));
}

const last = (messages) => messages.findLast(({ role }) => role === 'assistant')?.content ?? '';

const pageTool = (name, result) => ({
  tools: [{ name, description: `Does ${name}.`, parameters: { type: 'object' } }],
  answers: { [name]: result },
});

const recipe = {
  title: 'Our soup', skill_level: 'Beginner', cooking_time: '30 min', special_preferences: ['Spicy'],
  ingredients: [{ icon: '🥕', name: 'Carrots', amount: '3' }], instructions: ['Cook.'],
};

/**
 * By the agent's name, or with the agent's name:
 *
 *   say      what is said
 *   client   what a client without a page brings: tools and the answers to their calls, a state, the
 *            answer to a question, parts of the message
 *   events   checks the events that such a client gets, and its state while a person is asked
 *   history  checks the messages of the thread, and its state
 *   prepare  what a person does before
 *   asks     when the page waits for a person, and act, what they do
 *   meanwhile what the page shows before, if nothing disturbs it
 *   shown    what the page shows in the end, also when it is loaded again
 */
export const features = {
  agentic_chat: {
    say: 'Change the background to a sunset',
    client: pageTool('change_background', 'Done.'),
    history(messages) {
      assert.equal(calls(messages, 'change_background').length, 1);
      assert.match(last(messages), /is a sunset now/);
    },
    shown: `document.documentElement.style.getPropertyValue('--dojo-backdrop').includes('#fb923c') && ${shows('is a sunset now')}`,
  },
  backend_tool_rendering: {
    say: 'What is the weather in Lisbon?',
    history(messages) {
      assert.deepEqual(calls(messages, 'get_weather'), [{ location: 'Lisbon' }]);
      assert.match(last(messages), /^In Lisbon it is/);
    },
    shown: `document.querySelector('.weather[data-status=complete] dl') && ${shows('In Lisbon it is')}`,
  },
  human_in_the_loop: {
    say: 'Plan a trip to Mars in 5 steps',
    client: pageTool('generate_task_steps', JSON.stringify({ accepted: true, steps: [1, 2, 3, 4].map((n) => ({ description: `${n}`, status: 'enabled' })) })),
    history(messages) {
      assert.equal(calls(messages, 'generate_task_steps')[0].steps.length, 5);
      assert.match(last(messages), /^I take these 4 steps/);
    },
    asks: "document.querySelector('.steps[data-open]')",
    async act(page) {
      await page.run("document.querySelectorAll('.steps input')[1].click()");
      await page.until("document.querySelector('.steps header span').innerText === '4 of 5'");
      await page.pressButton('Confirm', '.steps');
    },
    shown: `document.querySelector('.steps .told')?.innerText === '✓ Confirmed' && document.querySelectorAll('.steps input:checked').length === 4 && ${shows('I take these 4 steps')}`,
  },
  agentic_generative_ui: {
    say: 'Plan a trip to Mars in 4 steps',
    history(messages, state) {
      assert.deepEqual(calls(messages, 'update_plan_step').map(({ index }) => index), [0, 1, 2, 3]);
      assert.deepEqual(state.steps.map(({ status }) => status), Array(4).fill('completed'));
    },
    meanwhile: "document.querySelector('.tasks li[data-status=completed]') && document.querySelector('.tasks li[data-now]')",
    shown: `document.querySelectorAll('.tasks li[data-status=completed]').length === 4 && ${shows('All 4 steps are done')}`,
  },
  tool_based_generative_ui: {
    say: 'Write a haiku about autumn',
    client: pageTool('generate_haiku', 'Shown.'),
    history(messages) {
      assert.equal(calls(messages, 'generate_haiku')[0].english.length, 3);
      assert.match(last(messages), /about autumn/);
    },
    shown: `document.querySelectorAll('.haiku').length === 1 && ${shows('Morning finds it tied.')} && ${shows('the only one that I know')}`,
  },
  shared_state: {
    say: 'Improve the recipe',
    client: { state: { recipe } },
    history(messages, state) {
      assert.equal(calls(messages, 'generate_recipe').length, 1);
      assert.equal(state.recipe.title, 'Our soup');
      assert.equal(state.recipe.ingredients.filter(({ name }) => name === 'Garlic').length, 1);
    },
    async prepare(page) {
      await page.until("!document.querySelector('.recipe fieldset').disabled");
      await page.fill('.recipe .title', 'Our soup');
      await page.until("document.querySelector('.recipe .title').value === 'Our soup'");
    },
    shown: `document.querySelector('.recipe .title').value === 'Our soup' && [...document.querySelectorAll('.ingredients input')].filter((e) => e.value === 'Garlic').length === 1 && ${shows('I have added garlic')}`,
  },
  predictive_state_updates: {
    say: 'Write a story about a pirate',
    client: { payload: { approved: true } },
    events(events, state) {
      const [name] = events.filter(({ type }) => type === 'CUSTOM');
      assert.deepEqual(name.value, [{ state_key: 'document', tool: 'write_document', tool_argument: 'document' }]);
      const grown = events.flatMap(({ type, delta }) => (type === 'STATE_DELTA' ? delta : [])).map(({ value }) => value.length);
      assert.ok(grown.length > 5 && grown.every((length, n) => n === 0 || length > grown[n - 1]), `it grows: ${grown}`);
      assert.ok(!state?.document, 'it is not kept before the person agrees');
    },
    history(messages, state) {
      assert.equal(calls(messages, 'write_document')[0].document, state.document);
      assert.equal(last(messages), 'The story about a pirate is kept.');
    },
    meanwhile: "document.querySelector('.document[data-writes]')?.innerText.includes('There once was')",
    asks: "document.querySelector('.document[data-asks]')",
    async act(page) {
      await page.until("document.querySelector('.document').innerText.includes('no night at all.')");
      await page.pressButton('Keep it', '.document');
    },
    shown: `!document.querySelector('.document[data-asks]') && document.querySelector('.document')?.innerText.includes('no night at all.') && ${shows('The story about a pirate is kept.')}`,
  },
  refusal: {
    agent: 'predictive_state_updates',
    say: 'Write a story about a mermaid',
    client: { payload: { approved: false } },
    history(messages, state) {
      assert.equal(calls(messages, 'write_document').length, 1);
      assert.ok(!state?.document, 'what was refused is not kept');
    },
    asks: "document.querySelector('.document[data-asks]')",
    act: (page) => page.pressButton('Refuse it', '.document'),
    shown: `document.querySelector('.stage .empty') && ${shows('Then I leave it')}`,
  },
  agentic_chat_reasoning: {
    say: 'Think: cheese',
    history(messages) {
      assert.equal(messages.filter(({ role }) => role === 'reasoning').length, 1);
      assert.match(last(messages), /cheese is worth thinking about/);
    },
    shown: `${shows('cheese is worth thinking about')} && ${shows('Thought')}`,
  },
  agentic_chat_multimodal: {
    say: 'What is this?',
    client: { parts: [{ type: 'image', source: { type: 'data', value: dot, mimeType: 'image/png' } }] },
    history(messages) {
      assert.deepEqual(messages[0].content.map(({ type }) => type).sort(), ['image', 'text']);
      assert.match(last(messages), /1 × 1 pixels/);
    },
    async prepare(page, dir) {
      await page.until("document.querySelector('input[type=file]')");
      writeFileSync(join(dir, 'dot.png'), Buffer.from(dot, 'base64'));
      const { result } = await page.send('Runtime.evaluate', { expression: "document.querySelector('input[type=file]')" });
      await page.send('DOM.setFileInputFiles', { files: [join(dir, 'dot.png')], objectId: result.objectId });
      await page.until("document.querySelector('[data-testid=copilot-attachment-queue]')");
    },
    shown: `${shows('1 × 1 pixels')} && document.querySelector('.talk img')`,
  },
  painting: {
    agent: 'agentic_chat_multimodal',
    say: 'paint the sea',
    history(messages) {
      assert.deepEqual(messages.filter(({ role }) => role === 'activity').map(({ activityType }) => activityType), ['holdfast.image']);
    },
    shown: `document.querySelector('.painted')?.naturalWidth === 320 && ${shows('The sea in the evening')}`,
  },
  interrupt: {
    say: 'Book a call about prices with sales',
    client: { payload: { chosen_label: 'Monday, 14:00' } },
    history(messages) {
      assert.deepEqual(calls(messages, 'schedule_meeting'), [{ topic: 'a call about prices', attendee: 'sales' }]);
      assert.equal(last(messages), 'Booked: a call about prices, Monday, 14:00.');
    },
    asks: "document.querySelector('.meeting')",
    act: (page) => page.pressButton('Monday, 14:00', '.meeting'),
    shown: `!document.querySelector('.meeting') && ${shows('Booked: a call about prices, Monday, 14:00.')}`,
  },
};
