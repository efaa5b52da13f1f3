/** Loaded by `--import` into a process whose clock is to be wrong: by CLOCK_SHIFT_MS, as if its machine's was. Steady clocks stay right. */
const shift_ms = Number(process.env.CLOCK_SHIFT_MS);
const RightDate = Date;

class ShiftedDate extends RightDate {
  constructor(...given: [] | [number]) {
    if (given.length === 0) super(RightDate.now() + shift_ms);
    else super(...given);
  }

  static override now(): number {
    return RightDate.now() + shift_ms;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;
