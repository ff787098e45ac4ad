// First of all the tokens: they say in which order the layers of styles count.
import './ui/tokens.css';
import './ui/base.css';
import './app/policy.ts';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/App.tsx';
import { createStudio } from './app/context.tsx';

const root = document.getElementById('root');
if (root) createRoot(root).render(<StrictMode><App studio={createStudio(window)} /></StrictMode>);
