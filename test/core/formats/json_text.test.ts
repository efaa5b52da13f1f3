import t from 'tap';
import { jsonText } from '../../../src/core/formats/json_text.ts';

t.test('JSON holds no control character, and says the same', async (t) => {
  const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('');
  const value = { [controls]: [controls, 'Zoë\u00a0été 日本'] };
  for (const indent of [undefined, 2]) {
    const text = jsonText(value, indent);
    t.notMatch(text.replaceAll('\n', ''), /\p{Cc}/u);
    t.same(JSON.parse(text), value);
  }
  t.match(jsonText({ text: '\u009b31m' }), '"\\u009b31m"');
});
