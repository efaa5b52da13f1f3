import { benchOfClicks } from './clicks.ts';

export const track = benchOfClicks(
  {
    name: 'track',
    doc: 'POST /v1/track/click, as pages send it, with its attribution, beside a bare Fastify route with one insert.',
  },
  (load, { track }) => [
    {
      name: 'track',
      doc: 'POST /v1/track/click with a publishable key, same load: recorded, and answered with its cookie',
      baseline: 'bare',
      run: load(track),
    },
  ],
);
