process.env.AGUI_CLIENT = '1.0.0';
await import('./scenarios.mjs');
