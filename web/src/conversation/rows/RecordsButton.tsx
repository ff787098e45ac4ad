import type { Item } from '../../log/view.ts';
import { IconButton } from '../../ui/Button.tsx';
import { TerminalIcon } from '../../ui/icons.tsx';
import { useRows } from '../context.ts';

/** Leads to the records of an item in the inspector. */
export function RecordsButton({ item }: { item: Item }) {
  const { showRecords } = useRows();
  if (item.first === 0) return null;
  return <IconButton size="small" label="Show its records" onClick={() => showRecords(item)}><TerminalIcon /></IconButton>;
}
