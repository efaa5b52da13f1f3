import { grouped } from './tables.ts';

const bar_width = 30;

export interface Progress extends Disposable {
  /** How many of the partners were looked at so far, and the payouts that came of it. */
  shows(partners: number, payouts: number): void;
}

/** How far a batch is, on standard error: a bar that moves on a terminal, elsewhere a line for each tenth. */
export function showProgress(partners_total: number): Progress {
  return process.stderr.isTTY ? movingBar(partners_total) : plainLines(partners_total);
}

function movingBar(total: number): Progress {
  const clear = () => process.stderr.write('\r\x1b[K');
  return {
    shows(partners, payouts) {
      const filled = Math.round(shareOf(partners, total) * bar_width);
      const bar = '█'.repeat(filled) + '░'.repeat(bar_width - filled);
      clear();
      process.stderr.write(`${bar}  ${said(partners, total, payouts)}`);
    },
    [Symbol.dispose]: clear,
  };
}

function plainLines(total: number): Progress {
  let tenths = 0;
  return {
    shows(partners, payouts) {
      const now = Math.floor(shareOf(partners, total) * 10);
      if (now === tenths) return;
      tenths = now;
      console.error(said(partners, total, payouts));
    },
    [Symbol.dispose]() {},
  };
}

/** Partners who earned something meanwhile can be more than were counted. */
const shareOf = (partners: number, total: number): number => (total === 0 ? 1 : Math.min(1, partners / total));

const said = (partners: number, total: number, payouts: number): string =>
  `${grouped(partners)} of ${grouped(Math.max(partners, total))} partners looked at, ${grouped(payouts)} payouts created`;
