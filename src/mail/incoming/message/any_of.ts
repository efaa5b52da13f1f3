/** A pattern of many alternatives, which lines and `|` separate, without regard to case: anyOf`a|b` over as many lines as it takes. */
export function anyOf(texts: TemplateStringsArray, ...values: string[]): RegExp {
  const lines = String.raw(texts, ...values).split('\n');
  return new RegExp(lines.flatMap((line) => line.trim() || []).join('|'), 'imu');
}
