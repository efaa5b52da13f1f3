/** A payout provider in a process of its own: it counts the money while workers are killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import t from 'tap';
import { PayPalServer } from '../program/payouts/rails/paypal_server.ts';
import { control, type Fault, type Movement, runAlone } from '../program/payouts/rails/provider_server.ts';

class CountingPayPal extends PayPalServer {
  /** Returns the number of its calls. */
  count(): number {
    return this.calls.length;
  }
}

export interface PayoutRail {
  url: string;
  credentials: object;
  count(): Promise<number>;
  moved(): Promise<Movement[]>;
  /** Sets the faults of the next calls. */
  script(faults: (Fault | undefined)[]): Promise<unknown>;
}

/** Starts it. It is gone when the file's tests are done. */
export async function startPayoutRail(): Promise<PayoutRail> {
  const child = spawn(process.execPath, [import.meta.filename], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { url, credentials } = JSON.parse(line);
  return {
    ...{ url, credentials },
    count: () => control(url, 'count') as Promise<number>,
    moved: () => control(url, 'moved') as Promise<Movement[]>,
    script: (faults) =>
      control(
        url,
        'script',
        faults.map((fault) => fault ?? null),
      ),
  };
}

if (import.meta.main) {
  // This file is no test there: tap would end it after 30 seconds.
  t.setTimeout(0);
  const server = new CountingPayPal();
  server.balances.USD = 1e12;
  await runAlone(server, () => ({ credentials: server.credentials }));
}
