import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { SchemaForm, useSchemaForm } from './SchemaForm.tsx';
import type { Reading } from './draft.ts';

function Asked({ schema, value, got }: { schema: unknown; value?: unknown; got: (reading: Reading) => void }) {
  const form = useSchemaForm(schema, value);
  return <form onSubmit={(e) => { e.preventDefault(); got(form.read()); }}><SchemaForm form={form} name="answer" /><button type="submit">Send</button></form>;
}

const everything = {
  type: 'object', required: ['name', 'size', 'drink'],
  properties: {
    name: { type: 'string', title: 'Your name' }, size: { type: 'integer', minimum: 1, maximum: 9 }, drink: { enum: ['tea', 'coffee'] },
    city: { enum: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] }, extras: { type: 'array', items: { enum: ['milk', 'sugar'] } }, hot: { type: 'boolean', description: 'Hot?' },
    tags: { type: 'array', items: { type: 'string' } }, to: { type: 'object', properties: { street: { type: 'string' } } },
    pay: { oneOf: [{ title: 'Card', properties: { number: { type: 'string' } } }, { title: 'Cash', properties: { coins: { type: 'integer' } } }] }, free: {}, day: { type: 'string', format: 'date' },
  },
};

describe('SchemaForm', () => {
  it('asks for everything that a schema can ask for', async () => {
    const user = userEvent.setup();
    let got: Reading | undefined;
    render(<Asked schema={everything} got={(r) => { got = r; }} />);
    await expectAccessible();
    await user.type(screen.getByLabelText('Your name'), 'Ada');
    await user.type(screen.getByLabelText('Size'), '3');
    await user.click(screen.getByRole('radio', { name: 'tea' }));
    await user.selectOptions(screen.getByLabelText(/City/), 'g');
    await user.click(screen.getByRole('checkbox', { name: 'sugar' }));
    await user.click(screen.getByRole('checkbox', { name: 'Hot?' }));
    await user.click(screen.getByRole('button', { name: 'Add tag' }));
    await user.type(screen.getByLabelText('Tag 1'), 'x');
    await user.type(screen.getByLabelText(/Street/), 'Main');
    await user.selectOptions(screen.getByLabelText('Kind'), 'Cash');
    await user.type(screen.getByLabelText(/Coins/), '5');
    await user.click(screen.getByRole('button', { name: 'Send' }));
    expect(got?.value).toEqual({ name: 'Ada', size: 3, drink: 'tea', city: 'g', extras: ['sugar'], hot: true, tags: ['x'], to: { street: 'Main' }, pay: { coins: 5 } });
    await expectAccessible();
  });

  it('says what is wrong after it was sent, and takes that back while it is mended', async () => {
    const user = userEvent.setup();
    let got: Reading | undefined;
    render(<Asked schema={everything} got={(r) => { got = r; }} />);
    expect(screen.queryByText('This is needed.')).toBeNull();
    await user.click(screen.getByRole('button', { name: 'Send' }));
    expect(got?.problems?.size).toBe(3);
    expect(screen.getByLabelText('Your name').getAttribute('aria-invalid')).toBe('true');
    await expectAccessible();
    await user.type(screen.getByLabelText('Your name'), 'A');
    expect(screen.getByLabelText('Your name').getAttribute('aria-invalid')).toBeNull();
  });

  it('begins with a value', async () => {
    const user = userEvent.setup();
    let got: Reading | undefined;
    render(<Asked schema={{ type: 'string' }} value="as it was" got={(r) => { got = r; }} />);
    await user.type(screen.getByLabelText('Answer'), '!');
    await user.click(screen.getByRole('button', { name: 'Send' }));
    expect(got?.value).toBe('as it was!');
  });
});
