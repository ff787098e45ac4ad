import { describe, expect, it, vi } from 'vitest';
import type { Fields } from '../../log/json.ts';
import { frameAddress } from './appAddress.ts';
import { hostOf, type Host } from './appHost.ts';

function host(more: Partial<Host> = {}) {
  const posted: Fields[] = [];
  const given: Host = {
    post: (m) => void posted.push(m), html: '<p>hi</p>', csp: { connectDomains: ['https://a.example'] }, tool: 'show', input: { in: 'x' }, result: { content: [] }, context: { theme: 'dark' },
    resize: vi.fn(), open: vi.fn(() => Promise.resolve(true)), say: vi.fn(() => Promise.resolve(true)), call: vi.fn((name) => Promise.resolve({ content: [{ type: 'text', text: name }] })), gone: vi.fn(), ...more,
  };
  const take = hostOf(given);
  return { given, posted, tell: (method: string, params: unknown = {}) => take({ jsonrpc: '2.0', method, params }), ask: async (method: string, params: unknown = {}) => {
    await take({ jsonrpc: '2.0', id: 7, method, params });
    return posted.at(-1)!;
  } };
}

describe('the host of an interface', () => {
  it('sends the page once, and then what the call has brought', async () => {
    const { given, posted, tell, ask } = host();
    await tell('ui/notifications/sandbox-proxy-ready');
    expect(posted).toEqual([{ jsonrpc: '2.0', method: 'ui/notifications/sandbox-resource-ready', params: { html: '<p>hi</p>' } }]);
    expect(await ask('ui/initialize', { protocolVersion: '2026-01-26' })).toMatchObject({
      id: 7, result: { protocolVersion: '2026-01-26', hostCapabilities: { openLinks: {}, serverTools: {}, sandbox: { csp: { connectDomains: ['https://a.example'] } } }, hostContext: { theme: 'dark', displayMode: 'inline', toolInfo: { tool: { name: 'show' } } } },
    });
    await tell('ui/notifications/initialized');
    await tell('ui/notifications/initialized');
    expect(posted.slice(2)).toEqual([
      { jsonrpc: '2.0', method: 'ui/notifications/tool-input', params: { arguments: { in: 'x' } } },
      { jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: { content: [] } },
    ]);
    await tell('ui/notifications/size-changed', { width: 10, height: 300 });
    expect(given.resize).toHaveBeenCalledExactlyOnceWith(300);
    await tell('ui/notifications/sandbox-proxy-ready');
    expect(given.gone).toHaveBeenCalledOnce();
    expect(posted.length).toBe(4);
  });

  it('opens links and says words only if a person agrees', async () => {
    const { given, ask } = host({ say: () => Promise.resolve(false) });
    expect(await ask('ui/open-link', { url: 'https://a.example/x' })).toEqual({ jsonrpc: '2.0', id: 7, result: {} });
    expect(given.open).toHaveBeenCalledExactlyOnceWith('https://a.example/x');
    for (const url of ['javascript:alert(1)', 'data:text/html,x', 'blob:x', 'file:///etc/passwd', '/here', '']) expect(await ask('ui/open-link', { url })).toMatchObject({ error: { code: -32000, message: 'Invalid URL' } });
    expect(await ask('ui/message', { role: 'user', content: { type: 'text', text: 'hello' } })).toMatchObject({ error: { message: 'Message sending denied' } });
    expect(await ask('ui/message', { role: 'assistant', content: { type: 'text', text: 'hello' } })).toMatchObject({ error: { message: 'Invalid message format' } });
    expect(given.open).toHaveBeenCalledOnce();
  });

  it('calls tools one after the other, and tells what fails', async () => {
    const order: string[] = [];
    const { ask } = host({ call: async (name) => {
      order.push(name);
      await Promise.resolve();
      order.push(`${name} done`);
      if (name === 'b') throw new Error('It is down.');
      return { content: [] };
    } });
    await Promise.all([ask('tools/call', { name: 'a' }), ask('tools/call', { name: 'b' }), ask('tools/call', { name: 'c', arguments: {} })]);
    expect(order).toEqual(['a', 'a done', 'b', 'b done', 'c', 'c done']);
    expect(await ask('tools/call', { name: 'b' })).toMatchObject({ error: { code: -32000, message: 'It is down.' } });
  });

  it('knows nothing else', async () => {
    const { posted, ask, tell } = host();
    for (const method of ['resources/read', 'sampling/createMessage', 'constructor', 'toString', 'ui/update-model-context']) expect(await ask(method)).toMatchObject({ error: { code: -32601 } });
    expect(await ask('ping')).toMatchObject({ result: {} });
    const before = posted.length;
    await tell('constructor');
    await tell('notifications/message', { data: 'x' });
    expect(posted.length).toBe(before);
  });

  it('names in the address of the frame what the server allows', () => {
    expect(frameAddress('http://h/p/', { connectDomains: ['https://a.example'], resourceDomains: ['https://*.b.example'] })).toBe('http://h/p/ui/app-frame?connect=https%3A%2F%2Fa.example&resource=https%3A%2F%2F*.b.example');
    expect(frameAddress('http://h/', {})).toBe('http://h/ui/app-frame?');
  });
});
