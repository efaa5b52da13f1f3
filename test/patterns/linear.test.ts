/**
 * Every pattern of the service takes a time that grows with the length of a text, and not with its square: whoever writes a mail, a page or a file chooses that
 * text. Each is tried on what it repeats, again and again, and its steps are counted. `npm run soak -- patterns` asks `recheck` of all.
 */
import t from 'tap';
import { effort } from '../runner/effort.ts';
import { bounded, checked, needless, patterns, unseen } from './all.ts';
import { pumpsOf } from './pumps.ts';
import { isLinear } from './steps.ts';

t.test('the patterns are all of the service', async (t) => {
  t.ok(patterns.size > 500, `${patterns.size} patterns`);
  t.same(unseen, [], 'each that is made is one of them');
  t.same(needless, []);
  for (const text of Object.keys(bounded)) t.ok(patterns.has(text), `${text} is one of them`);
});

t.test('steps tell what is more than linear', async (t) => {
  const slow = [/\s+$/, /x.*?y/, /(?:a|b)*c/, /(a+)+$/, /^a*a*$/, /<a.*>/, /\p{L}+@/u, /"(?:[^"]|a)*x/, /^b: *\s*c/];
  const fast = [/^\s+$/, /(?<=a+)b/, /[a-z]{1,200}@/, /(?<!\s)\s+$/, /^(?:ab)*c/, /a|b|.c/];
  const seemsLinear = ({ source, flags }: RegExp) =>
    pumpsOf({ source, flags, at: '' }).every(({ prefix, unit }) => isLinear({ source, flags }, prefix, unit));
  t.same(
    slow.filter((each) => seemsLinear(each)),
    [],
  );
  t.same(
    fast.filter((each) => !seemsLinear(each)),
    [],
  );
});

t.test('none is more than linear on what is made for it', async (t) => {
  let texts = 0;
  for (const [text, pattern] of checked) {
    for (const { prefix, unit } of pumpsOf(pattern).slice(0, effort.texts_of_pattern)) {
      texts += 1;
      if (!isLinear(pattern, prefix, unit))
        t.fail(`${pattern.at}: ${text} on ${JSON.stringify(prefix)}, then ${JSON.stringify(unit)} again and again`);
    }
  }
  t.ok(texts > 4 * checked.length, `${texts} texts`);
});
