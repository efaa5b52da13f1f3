/** `npm run soak -- worker`: kills the worker before and after every statement of the slice. It takes some minutes. */
import t from 'tap';
import { startRail } from '../harness.ts';
import { countStatements, crashAt, openLine } from './line.ts';

t.setTimeout(3_600_000);

const rail = await startRail({ worker: false, durability: 'durable' });

t.test('a worker that dies at any statement loses nothing and doubles nothing', async (t) => {
  const line = await openLine(rail);
  const statements = await countStatements(line);
  for (let nth = 1; nth <= statements; nth++) {
    for (const side of ['before', 'after', 'jobs'] as const) {
      const { killed, text, faults } = await crashAt(line, side, nth);
      t.same(faults, [], killed ? `${side} statement ${nth} of ${statements}: ${text}` : `${side} ${nth}: not reached`);
    }
  }
});
