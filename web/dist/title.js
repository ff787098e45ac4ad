
import { $ } from './dom.js';
export function heading(save) {
const [title, input] = [$('title'), $('newtitle')];
const edit = (on) => {
title.hidden = on;
input.hidden = !on;
};
const done = (keep) => {
if (input.hidden) return; // hiding it takes the focus from it
const wanted = input.value.trim();
edit(false);
if (keep && wanted !== title.textContent) save(wanted);
};
title.addEventListener('click', () => {
input.value = title.textContent;
edit(true);
input.focus();
input.select();
});
input.addEventListener('blur', () => done(true));
input.addEventListener('keydown', (e) => {
if (e.isComposing || (e.key !== 'Enter' && e.key !== 'Escape')) return;
e.stopPropagation(); // elsewhere, Escape stops a run
done(e.key === 'Enter');
title.focus();
});
return (text, can) => {
if (!can) done(false);
if (title.textContent !== text) title.textContent = text;
title.disabled = !can;
title.title = can ? 'Rename' : '';
};
}
