import type { Item } from '../../log/view.ts';
import { IconButton } from '../../ui/Button.tsx';
import { ChevronLeftIcon, ChevronRightIcon } from '../../ui/icons.tsx';
import { useRows } from '../context.ts';

/** Which of the ways in which the conversation went on here is shown, and the way to the others. */
export function VersionPicker({ of }: { of: Item }) {
  const { versionsOf, switchTo, busy, readOnly } = useRows();
  const versions = versionsOf(of.key);
  if (!versions) return null;
  const { branch, shown, count } = versions;
  const fixed = busy || readOnly;
  return (
    <div className="conversation-versions" role="group" aria-label="Versions">
      <IconButton size="small" label="Earlier version" disabled={fixed || shown === 0} onClick={() => switchTo(branch, shown - 1)}><ChevronLeftIcon /></IconButton>
      <span className="num small">{shown + 1} / {count}</span>
      <IconButton size="small" label="Later version" disabled={fixed || shown >= count - 1} onClick={() => switchTo(branch, shown + 1)}><ChevronRightIcon /></IconButton>
    </div>
  );
}
