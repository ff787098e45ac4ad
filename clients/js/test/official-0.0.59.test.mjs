process.env.AGUI_CLIENT = '0.0.59';
await import('./scenarios.mjs');
