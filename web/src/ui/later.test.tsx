import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { Suspense } from 'react';
import { expect, it, vi } from 'vitest';
import { later } from './later.tsx';
import { PanelBoundary } from './PanelBoundary.tsx';
import { TooltipProvider } from './Tooltip.tsx';

it('what could not be loaded is loaded when one tries again', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const load = vi.fn<() => Promise<{ default: (props: { name: string }) => string }>>().mockRejectedValueOnce(new TypeError('no connection')).mockResolvedValue({ default: ({ name }) => `Hello, ${name}` });
  const Panel = later(load);
  render(<TooltipProvider><PanelBoundary name="The panel"><Suspense fallback="…"><Panel name="Ada" /></Suspense></PanelBoundary></TooltipProvider>);
  await userEvent.click(await screen.findByRole('button', { name: 'Try again' }));
  expect(await screen.findByText('Hello, Ada')).toBeTruthy();
  expect(load).toHaveBeenCalledTimes(2);
  vi.restoreAllMocks();
});
