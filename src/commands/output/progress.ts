const bar_width = 30;

export interface Progress extends Disposable {
  /** @param share how much is done, from 0 to 1 @param text the same in words */
  shows(share: number, text: string): void;
}

/** Shows the progress of some work on standard error: a bar that moves on a terminal, elsewhere a line for each tenth. */
export const showProgress = (): Progress => (process.stderr.isTTY ? movingBar() : plainLines());

function movingBar(): Progress {
  const clear = () => process.stderr.write('\r\x1b[K');
  return {
    shows(share, text) {
      const filled = Math.round(share * bar_width);
      const bar = '█'.repeat(filled) + '░'.repeat(bar_width - filled);
      clear();
      process.stderr.write(`${bar}  ${text}`);
    },
    [Symbol.dispose]: clear,
  };
}

function plainLines(): Progress {
  let tenths = 0;
  return {
    shows(share, text) {
      const now = Math.floor(share * 10);
      if (now === tenths) return;
      tenths = now;
      console.error(text);
    },
    [Symbol.dispose]() {},
  };
}
