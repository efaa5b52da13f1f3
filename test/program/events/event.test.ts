import t from 'tap';
import { event } from '../../../src/program/events/event.ts';

const program_id = 'prg_1';
const commission = {
  ...{ id: 'com_1', object: 'commission' as const, program_id, partner_id: 'part_1', sale_id: null, rule_id: null },
  ...{ kind: 'sale', amount_minor: 500, currency: 'USD', status: 'due', mature_at: '2026-11-21T09:30:00.000Z' },
  note: 'For the merchant only.',
};

t.test("an event has the fields of its type: the record's id, its fields and what it does not have", async (t) => {
  t.same(event('commission.voided', commission, { reason: 'sale_refunded' }), {
    product: 'program',
    type: 'commission.voided',
    subject_id: program_id,
    owner_id: 'part_1',
    data: {
      ...{ commission_id: 'com_1', sale_id: null, partner_id: 'part_1', amount_minor: 500, currency: 'USD' },
      reason: 'sale_refunded',
    },
  });
});

t.test('a field that is given replaces that of the record', async (t) => {
  t.match(event('commission.deleted', commission, { partner_id: 'part_2' }), {
    owner_id: 'part_2',
    data: { commission_id: 'com_1', partner_id: 'part_2' },
  });
});

t.test('an optional field is there only with a value that it takes', async (t) => {
  t.notOk('kind' in event('commission.created', commission).data);
  t.match(event('commission.created', { ...commission, kind: 'clawback' }).data, { kind: 'clawback' });
});

t.test('the compiler refuses an event whose fields are not covered', async (t) => {
  // @ts-expect-error: the record has no reason
  event('commission.voided', commission);
  // @ts-expect-error: the type has no such field
  event('commission.voided', commission, { reason: 'sale_refunded', other: 1 });
  // @ts-expect-error: without its object, the record does not say what its id is
  event('commission.deleted', { id: 'com_1', program_id, partner_id: 'part_1' });
  // @ts-expect-error: the event takes no null there
  event('sale.deleted', { id: 'sale_1', object: 'sale', program_id, partner_id: null });
  t.pass();
});
