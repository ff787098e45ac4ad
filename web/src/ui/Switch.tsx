import { Switch as Base } from '@base-ui/react/switch';
import { useId, type ReactNode } from 'react';
import './Field.css';

/** On or off, at once. */
export function Switch({ checked, onChange, about, disabled = false, children }: { checked: boolean; onChange: (checked: boolean) => void; about?: ReactNode; disabled?: boolean; children: ReactNode }) {
  const id = useId();
  return (
    <div className="switch-field">
      <Base.Root className="switch" checked={checked} onCheckedChange={(next) => onChange(next)} disabled={disabled} aria-labelledby={`${id}-name`} aria-describedby={about ? `${id}-about` : undefined}>
        <Base.Thumb className="switch-thumb" />
      </Base.Root>
      <div className="grow">
        <span id={`${id}-name`} className="switch-name" onClick={() => !disabled && onChange(!checked)}>{children}</span>
        {about && <p id={`${id}-about`} className="field-about">{about}</p>}
      </div>
    </div>
  );
}
