import { Menu as Base } from '@base-ui/react/menu';
import type { ReactElement, ReactNode } from 'react';
import { CheckIcon } from './icons.tsx';
import { Kbd } from './Kbd.tsx';
import './layers.css';

/** A menu behind a button. */
export function Menu({ trigger, align = 'start', children }: { trigger: ReactElement; align?: 'start' | 'center' | 'end'; children: ReactNode }) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      {/* A landmark, as everything on a page is in one. */}
      <Base.Portal render={<section aria-label="Menu" />}>
        <Base.Positioner className="positioner" sideOffset={4} align={align} collisionPadding={8}>
          <Base.Popup className="popup menu">{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

export interface MenuItemProps {
  icon?: ReactNode;
  keys?: string;
  danger?: boolean;
  disabled?: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuItem({ icon, keys, danger = false, disabled = false, onSelect, children }: MenuItemProps) {
  return (
    <Base.Item className="menu-item" data-danger={danger || undefined} disabled={disabled} onClick={onSelect}>
      {icon}
      <span className="truncate">{children}</span>
      {keys && <Kbd keys={keys} />}
    </Base.Item>
  );
}

export interface MenuChoiceProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [value: T, name: string])[];
  onChange: (value: T) => void;
}

/** One of several. The menu stays open. */
export function MenuChoice<T extends string>({ label, value, options, onChange }: MenuChoiceProps<T>) {
  return (
    <Base.Group>
      <Base.GroupLabel className="menu-label">{label}</Base.GroupLabel>
      <Base.RadioGroup value={value} onValueChange={(next) => onChange(next as T)}>
        {options.map(([option, name]) => (
          <Base.RadioItem key={option} value={option} className="menu-item" closeOnClick={false}>
            <span className="menu-check"><Base.RadioItemIndicator><CheckIcon /></Base.RadioItemIndicator></span>
            {name}
          </Base.RadioItem>
        ))}
      </Base.RadioGroup>
    </Base.Group>
  );
}

export function MenuCheck({ checked, onChange, children }: { checked: boolean; onChange: (checked: boolean) => void; children: ReactNode }) {
  return (
    <Base.CheckboxItem className="menu-item" checked={checked} onCheckedChange={(next) => onChange(next)} closeOnClick={false}>
      <span className="menu-check"><Base.CheckboxItemIndicator><CheckIcon /></Base.CheckboxItemIndicator></span>
      {children}
    </Base.CheckboxItem>
  );
}

export const MenuSeparator = () => <Base.Separator className="menu-separator" />;
