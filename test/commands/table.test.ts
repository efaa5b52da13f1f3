import t from 'tap';
import { table } from '../../src/commands/output/table.ts';

const columns = ['ID', 'ORGANIZATION', 'NAME', 'AMOUNT', 'NOTE'];
const rows = [
  ['key_1', 'org_01m8fcw627fvq83zh6p0hj1g63', 'Demo live', 'USD 1,234.50', ''],
  ['key_2', 'org_01m8fcw627fvq83zh6p0hj1g63', 'Demo', 'JPY 5', ''],
];

t.test('a table is whole where it fits, with numbers to the right', (t) => {
  t.same(table(columns, rows, 'None.', 80), [
    'ID     ORGANIZATION                    NAME             AMOUNT  NOTE',
    'key_1  org_01m8fcw627fvq83zh6p0hj1g63  Demo live  USD 1,234.50',
    'key_2  org_01m8fcw627fvq83zh6p0hj1g63  Demo              JPY 5',
  ]);
  t.same(table(columns, [], 'None.', 80), ['None.']);
  t.end();
});

t.test('on a narrower terminal, what all rows have in common stands once', (t) => {
  t.same(table(columns, rows, '', 60), [
    'ID     NAME             AMOUNT',
    'key_1  Demo live  USD 1,234.50',
    'key_2  Demo              JPY 5',
    '',
    'ORGANIZATION: org_01m8fcw627fvq83zh6p0hj1g63',
  ]);
  t.end();
});

t.test('and on one that is narrower still, each row is a block', (t) => {
  t.same(table(columns, rows, '', 25), [
    ...['ID      key_1', 'NAME    Demo live', 'AMOUNT  USD 1,234.50', ''],
    ...['ID      key_2', 'NAME    Demo', 'AMOUNT  JPY 5', ''],
    'ORGANIZATION: org_01m8fcw627fvq83zh6p0hj1g63',
  ]);
  t.end();
});
