// Fields of forms: a name, a control, a sentence about it, and what is wrong with it.
import { useId, type ComponentProps, type ReactNode } from 'react';
import { classes } from './classes.ts';
import './Field.css';
import { ChevronDownIcon } from './icons.tsx';

interface Described {
  label: ReactNode;
  /** A sentence that explains it. */
  about?: ReactNode;
  /** The mistakes in its content. */
  error?: string;
  /** The label is only for screen readers: the surroundings say it to all others. */
  quiet?: boolean;
}

interface Wiring {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': true | undefined;
}

/** A field around any control; it is given what connects it with its words. */
export function Field({ label, about, error, quiet = false, required = false, children }: Described & { required?: boolean; children: (wiring: Wiring) => ReactNode }) {
  const id = useId();
  const described = [about && `${id}-about`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className="field">
      <label htmlFor={id} className={quiet ? 'sr' : 'field-label'}>{label}{required && <span className="field-required" aria-hidden="true"> *</span>}</label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error ? true : undefined })}
      {about && <p id={`${id}-about`} className="field-about">{about}</p>}
      {error && <p id={`${id}-error`} className="field-error">{error}</p>}
    </div>
  );
}

export type TextFieldProps = Described & Omit<ComponentProps<'input'>, 'onChange'> & { onChange: (text: string) => void };

export function TextField({ label, about, error, quiet, onChange, className, ...rest }: TextFieldProps) {
  return (
    <Field label={label} about={about} error={error} quiet={quiet} required={rest.required}>
      {(wiring) => <input type="text" {...rest} {...wiring} className={classes('input', className)} onChange={(e) => onChange(e.target.value)} />}
    </Field>
  );
}

export type TextAreaProps = Described & Omit<ComponentProps<'textarea'>, 'onChange'> & { onChange: (text: string) => void };

/** Several lines; it grows with what is in it. */
export function TextArea({ label, about, error, quiet, onChange, className, rows = 3, ...rest }: TextAreaProps) {
  return (
    <Field label={label} about={about} error={error} quiet={quiet} required={rest.required}>
      {(wiring) => <textarea {...rest} {...wiring} rows={rows} className={classes('input', 'textarea', className)} onChange={(e) => onChange(e.target.value)} />}
    </Field>
  );
}

export type SelectProps<T extends string> = Described & Omit<ComponentProps<'select'>, 'onChange' | 'value'> & {
  value: T;
  options: readonly (readonly [value: T, name: string])[];
  onChange: (value: T) => void;
};

/** One of several. It is the browser's own, which every keyboard, phone and screen reader knows. */
export function Select<T extends string>({ label, about, error, quiet, value, options, onChange, className, ...rest }: SelectProps<T>) {
  return (
    <Field label={label} about={about} error={error} quiet={quiet} required={rest.required}>
      {(wiring) => (
        <span className={classes('select', className)}>
          <select {...rest} {...wiring} className="input" value={value} onChange={(e) => onChange(e.target.value as T)}>
            {options.map(([option, name]) => <option key={option} value={option}>{name}</option>)}
          </select>
          <ChevronDownIcon />
        </span>
      )}
    </Field>
  );
}

/** A box to tick. */
export function Checkbox({ checked, onChange, disabled, about, children }: { checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean; about?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <div className="checkbox">
      <input type="checkbox" id={id} checked={checked} disabled={disabled} aria-describedby={about ? `${id}-about` : undefined} onChange={(e) => onChange(e.target.checked)} />
      <div className="grow">
        <label htmlFor={id}>{children}</label>
        {about && <p id={`${id}-about`} className="field-about">{about}</p>}
      </div>
    </div>
  );
}
