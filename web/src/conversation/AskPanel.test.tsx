import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import type { Answer } from '../api/actions.ts';
import { ApiError } from '../api/request.ts';
import { newCall } from '../log/messages.ts';
import type { Interrupt } from '../log/view.ts';
import { TooltipProvider } from '../ui/Tooltip.tsx';
import { AskPanel, type AskPanelProps } from './AskPanel.tsx';

const choose: Interrupt = { id: 'q1', reason: 'input_required', message: 'Which one?', responseSchema: { type: 'object', required: ['answer'], properties: { answer: { enum: ['tea', 'coffee'] } } } };
const approve: Interrupt = {
  id: 'q2', reason: 'tool_call', message: 'May the agent call pay?', toolCallId: 'c1', metadata: { tool: 'pay', arguments: { amount: 120 }, rule: 'money' },
  responseSchema: { type: 'object', required: ['approved'], properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, remember: { enum: ['run', 'thread'] }, editedArgs: { type: 'object' } } },
};
const fill: Interrupt = { id: 'q3', reason: 'input_required', message: 'Where to?', responseSchema: { type: 'object', required: ['city'], properties: { city: { type: 'string' }, zip: { type: 'string', maxLength: 5 } } } };

function ask(interrupts: Interrupt[], more: Partial<AskPanelProps> = {}) {
  const sent: (readonly Answer[])[] = [];
  const onAnswer = vi.fn((answers: readonly Answer[]) => {
    sent.push(answers);
    return Promise.resolve();
  });
  render(<TooltipProvider><main><AskPanel interrupts={interrupts} calls={[]} onAnswer={onAnswer} {...more} /></main></TooltipProvider>);
  return sent;
}

describe('AskPanel', () => {
  it('is answered with a button', async () => {
    const sent = ask([choose]);
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'coffee' }));
    expect(sent).toEqual([[{ interruptId: 'q1', status: 'resolved', payload: { answer: 'coffee' } }]]);
  });

  it('approves a call with other arguments', async () => {
    const sent = ask([approve], { parametersOf: () => ({ type: 'object', required: ['amount'], properties: { amount: { type: 'number' } } }) });
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Edit arguments' }));
    const amount = screen.getByLabelText(/Amount/);
    await userEvent.clear(amount);
    await userEvent.type(amount, '20');
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Approve with these arguments' }));
    expect(sent).toEqual([[{ interruptId: 'q2', status: 'resolved', payload: { approved: true, editedArgs: { amount: 20 } } }]]);
  });

  it('does not repeat arguments that nobody has changed, and rejects with a reason', async () => {
    const sent = ask([approve]);
    await userEvent.click(screen.getByRole('button', { name: 'Edit arguments' }));
    await userEvent.click(screen.getByRole('button', { name: 'Approve with these arguments' }));
    expect(sent[0]).toEqual([{ interruptId: 'q2', status: 'resolved', payload: { approved: true } }]);
  });

  it('rejects with what was said, whatever else is in the form', async () => {
    const sent = ask([approve]);
    await userEvent.click(screen.getByText(/Reason, remember/));
    await userEvent.type(screen.getByLabelText(/Reason/), 'too much');
    await userEvent.click(screen.getByRole('button', { name: 'Reject' }));
    expect(sent[0]).toEqual([{ interruptId: 'q2', status: 'resolved', payload: { reason: 'too much', approved: false } }]);
  });

  it('says what is missing in a form, and sends it with Enter on its button', async () => {
    const sent = ask([fill]);
    await userEvent.click(screen.getByRole('button', { name: 'Answer' }));
    expect(screen.getByText('This is needed.')).toBeTruthy();
    expect(document.activeElement).toBe(screen.getByLabelText('City'));
    await userEvent.type(screen.getByLabelText('City'), 'Vienna');
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Answer' }));
    expect(sent).toEqual([[{ interruptId: 'q3', status: 'resolved', payload: { city: 'Vienna' } }]]);
  });

  it('makes an answer of everything that schemas ask for, all in one request', async () => {
    const order: Interrupt = { id: 'a', reason: 'input_required', message: 'Tell me', responseSchema: { type: 'object', required: ['name', 'count'], properties: { name: { type: 'string', title: 'Your name' }, count: { type: 'integer', minimum: 1 }, size: { enum: ['S', 'M', 'L'], default: 'M' }, gift: { type: 'boolean' }, note: { type: 'object' } } } };
    // The focus goes to what is missing, and then stays where one writes.
    const sent = ask([order, { id: 'b', reason: 'tool_call', toolCallId: 'c' }, { id: 'd', reason: 'x:y', message: 'Free words' }], { calls: [{ ...newCall({ key: 'c:c', runId: 'r', first: 1, last: 1, open: false }, 'c'), name: 'pay', args: '{"amount":3}' }] });
    const [first, pay, free] = ['Tell me', 'May pay run?', 'Free words'].map((name) => within(screen.getByRole('group', { name })));
    expect(pay?.getByRole('tree', { name: 'Arguments' }).textContent).toContain('amount: 3');
    await userEvent.click(first?.getByRole('button', { name: 'Answer' }) as HTMLElement);
    expect(screen.getByText('0 of 3 answered. They are sent together.')).toBeTruthy();
    await userEvent.type(first?.getByLabelText('Your name') as HTMLElement, 'Bo');
    await userEvent.type(first?.getByLabelText('Count') as HTMLElement, '2');
    await userEvent.click(first?.getByRole('button', { name: 'Answer' }) as HTMLElement);
    await userEvent.click(pay?.getByRole('button', { name: 'Approve' }) as HTMLElement);
    expect(sent).toEqual([]);
    await userEvent.type(free?.getByLabelText('Answer') as HTMLElement, 'hm');
    await userEvent.click(free?.getByRole('button', { name: 'Answer' }) as HTMLElement);
    expect(sent).toEqual([[
      { interruptId: 'a', status: 'resolved', payload: { name: 'Bo', count: 2, size: 'M' } },
      { interruptId: 'b', status: 'resolved', payload: { approved: true } }, { interruptId: 'd', status: 'resolved', payload: 'hm' },
    ]]);
  });

  it('sends with a yes only what is valid, and with a no not what is invalid', async () => {
    const budget = { type: 'object', required: ['allow'], properties: { allow: { type: 'boolean' }, raise: { type: 'number', exclusiveMinimum: 0 } } };
    const sent = ask([
      { id: 'a', reason: 'holdfast:budget', message: 'May it go on?', responseSchema: budget, metadata: { used: 3 } },
      { id: 'b', reason: 'holdfast:permission', responseSchema: budget, metadata: { tool: 'pay', arguments: { amount: 3 }, rule: 'p*' } },
      { id: 'c', reason: 'holdfast:in_doubt', message: 'Has it happened?', responseSchema: { type: 'object', required: ['outcome'], properties: { outcome: { enum: ['happened', 'did_not_happen'] }, result: { type: 'string' } } }, metadata: { tool: 'pay', argumentsBytes: 20_000 } },
      { id: 'd', reason: 'x:y', message: 'Well?', responseSchema: { type: 'boolean' } },
    ]);
    const [a, b, c, d] = ['May it go on?', 'May pay run?', 'Has it happened?', 'Well?'].map((name) => within(screen.getByRole('group', { name })));
    expect(b?.getByText(/because of the rule “p\*”/)).toBeTruthy();
    expect(c?.getByText('Its arguments, 20 KB, are not shown here.')).toBeTruthy();
    await userEvent.type(a?.getByLabelText(/Raise/) as HTMLElement, '0');
    await userEvent.click(a?.getByRole('button', { name: 'Allow' }) as HTMLElement);
    expect(a?.getByText('It must be more than 0.')).toBeTruthy();
    await userEvent.type(a?.getByLabelText(/Raise/) as HTMLElement, '.5');
    await userEvent.click(a?.getByRole('button', { name: 'Allow' }) as HTMLElement);
    await userEvent.type(b?.getByLabelText(/Raise/) as HTMLElement, '-1');
    await userEvent.click(b?.getByRole('button', { name: 'Deny' }) as HTMLElement);
    await userEvent.click(c?.getByRole('button', { name: 'Did not happen' }) as HTMLElement);
    await userEvent.click(d?.getByRole('button', { name: 'No' }) as HTMLElement);
    expect(sent[0]?.map((answer) => 'payload' in answer && answer.payload)).toEqual([{ raise: 0.5, allow: true }, { allow: false }, { outcome: 'did_not_happen' }, false]);
  });

  it('shows a form for every schema, however it is written', async () => {
    const hostile = ['{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"object","properties":{"prototype":{"type":"boolean"}}}}}', '{"type":"string","format":"constructor","pattern":"(("}', '{"properties":[1],"required":"x","enum":{}}', '{"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false}', '{"oneOf":[{},{"type":"string","title":"<img src=x onerror=alert(1)>"}]}'];
    const sent = ask(hostile.map((schema, i) => ({ id: `h${i}`, reason: 'input_required', message: `Hostile ${i}`, responseSchema: JSON.parse(schema) as Record<string, unknown> })));
    await expectAccessible();
    expect(document.querySelector('img')).toBeNull();
    await userEvent.type(within(screen.getByRole('group', { name: 'Hostile 0' })).getByRole('textbox', { name: /^Proto/ }), 'x');
    await userEvent.click(within(screen.getByRole('group', { name: 'Hostile 0' })).getByRole('button', { name: 'Answer' }));
    for (let i = 1; i < hostile.length; i++) await userEvent.click(within(screen.getByRole('group', { name: `Hostile ${i}` })).getByRole('button', { name: 'Decline to answer' }));
    expect(JSON.stringify(sent[0]?.[0])).toBe('{"interruptId":"h0","status":"resolved","payload":{"__proto__":"x"}}');
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  it('edits the arguments in fields also if what they may be is known later', async () => {
    const onAnswer = vi.fn(() => Promise.resolve());
    const shown = (parametersOf?: AskPanelProps['parametersOf']) => <TooltipProvider><main><AskPanel interrupts={[approve]} calls={[]} onAnswer={onAnswer} parametersOf={parametersOf} /></main></TooltipProvider>;
    const { rerender } = render(shown());
    rerender(shown(() => ({ type: 'object', properties: { amount: { type: 'number' } } })));
    await userEvent.click(screen.getByRole('button', { name: 'Edit arguments' }));
    expect((screen.getByLabelText(/Amount/) as HTMLInputElement).value).toBe('120');
  });

  it('collects the answers of several questions, and lets one change them', async () => {
    const sent = ask([choose, fill]);
    await userEvent.click(screen.getByRole('button', { name: 'tea' }));
    expect(screen.getByText(/1 of 2 answered/)).toBeTruthy();
    expect(sent).toEqual([]);
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Change' }));
    await userEvent.click(screen.getByRole('button', { name: 'coffee' }));
    await userEvent.click(screen.getAllByRole('button', { name: 'Decline to answer' }).at(-1) as HTMLElement);
    expect(sent).toEqual([[{ interruptId: 'q1', status: 'resolved', payload: { answer: 'coffee' } }, { interruptId: 'q3', status: 'cancelled' }]]);
  });

  it('keeps everything when the server refuses an answer, and says why beside it', async () => {
    const refused = new ApiError(400, { code: 'invalid_answer', message: 'An answer is not what its question asks for.', details: { violations: [{ interruptId: 'q3', message: 'city: no such city' }] } });
    ask([choose, fill], { onAnswer: () => Promise.reject(refused) });
    await userEvent.click(screen.getByRole('button', { name: 'tea' }));
    await userEvent.type(screen.getByLabelText('City'), 'Atlantis');
    await userEvent.click(screen.getByRole('button', { name: 'Answer' }));
    expect(await screen.findByText('city: no such city')).toBeTruthy();
    expect((screen.getByLabelText('City') as HTMLInputElement).value).toBe('Atlantis');
    expect(within(screen.getByRole('group', { name: 'Which one?' })).queryByText('city: no such city')).toBeNull();
    await expectAccessible();
  });

  it('can only be declined after it has expired', async () => {
    const sent = ask([{ ...choose, expiresAt: new Date(Date.now() - 1000).toISOString() }]);
    expect(screen.getByText('expired')).toBeTruthy();
    expect((screen.getByRole('button', { name: 'tea' }) as HTMLButtonElement).disabled).toBe(true);
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Decline to answer' }));
    expect(sent).toEqual([[{ interruptId: 'q1', status: 'cancelled' }]]);
  });

  it('copies an answer as a command', async () => {
    const onCurl = vi.fn();
    ask([choose, approve], { onCurl });
    await userEvent.click(screen.getByRole('button', { name: 'Copy “Approve” as curl' }));
    expect(onCurl).toHaveBeenCalledExactlyOnceWith([{ interruptId: 'q1', status: 'cancelled' }, { interruptId: 'q2', status: 'resolved', payload: { approved: true } }]);
  });

  it('says how long a question is open', () => {
    ask([{ ...choose, expiresAt: new Date(Date.now() + 90_000).toISOString() }]);
    expect(screen.getByText(/1 m \d+ s left|90 s left|1 m 30 s left/)).toBeTruthy();
  });
});
