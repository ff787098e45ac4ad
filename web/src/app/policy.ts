// The page's policy lets nothing make code out of text. The library of AG-UI's schemas would
// try as soon as it is loaded, so this is loaded before.
import { config } from 'zod/v4/core';

config({ jitless: true });
