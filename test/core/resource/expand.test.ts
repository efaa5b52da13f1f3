import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail();

const marker = (object: string, id: string) => ({ id, object, deleted: true });

t.test('a relation whose object is deleted is expanded as the deleted marker', async (t) => {
  const shop = await openShop(rail);
  const { merchant } = shop;
  const rule = await shop.rule();
  const partner = await shop.partner();
  const link = await shop.link(partner);
  const click = await shop.click(partner, { param: 'ref', value: link.value });
  const customer = await shop.customer({ click_id: click.id });
  const sale = await shop.sale({ customer_id: customer.id });
  const [commission] = sale.commissions as [Json];
  await shop.pay(commission);
  const expanded = (plural: string, id: string, relations: string[]) =>
    merchant.get(`/v1/${plural}/${id}?expand=${relations.join(',')}`);
  const relations = ['partner', 'customer', 'sale', 'rule'];

  const before = await expanded('commissions', commission.id, relations);
  for (const name of relations) t.match(before[name], { id: before[`${name}_id`], object: name });

  await merchant.delete(`/v1/links/${link.id}`);
  await merchant.delete(`/v1/rules/${rule.id}`);
  await merchant.delete(`/v1/sales/${sale.id}`);
  await merchant.delete(`/v1/partners/${partner.id}`);

  const after = await expanded('commissions', commission.id, relations);
  t.same(after.partner, marker('partner', partner.id));
  t.same(after.sale, marker('sale', sale.id));
  t.same(after.rule, marker('rule', rule.id));
  t.match(after.customer, { id: customer.id, object: 'customer', email: customer.email });

  const { link: of_click, partner: by } = await expanded('clicks', click.id, ['link', 'partner']);
  t.same([of_click, by], [marker('link', link.id), marker('partner', partner.id)]);
  const listed = await shop.list('customers', 'expand[]=partner&expand[]=link');
  t.match(listed, [{ partner: marker('partner', partner.id), link: marker('link', link.id) }]);
});

t.test('a relation to nothing is null', async (t) => {
  const shop = await openShop(rail);
  const sale = await shop.sale();
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}?expand=partner,customer`), { partner: null, customer: null });
});

t.test('GETs that come together are each answered as by itself', async (t) => {
  const shop = await openShop(rail);
  const stranger = await openShop(rail);
  const partners = await Promise.all(Array.from({ length: 8 }, () => shop.partner()));
  const customers = await Promise.all(partners.map(({ id }) => shop.customer({ partner_id: id })));
  const foreign = await stranger.customer({ partner_id: (await stranger.partner()).id });
  const narrow = await rail.key(shop.merchant.organization_id, { scopes: ['customers:read'] });
  const reads = customers.flatMap(({ id }) => [
    shop.merchant.request('GET', `/v1/customers/${id}`),
    shop.merchant.request('GET', `/v1/customers/${id}?expand=partner`),
    narrow.request('GET', `/v1/customers/${id}`),
    narrow.request('GET', `/v1/customers/${id}?expand=partner`),
    shop.merchant.request('GET', `/v1/customers/${foreign.id}`),
    shop.merchant.request('GET', `/v1/customers/${id}?expand=nothing`),
  ]);
  const answers = (await Promise.all(reads)).map(({ status, body }) => ({ status, body }));
  const expected = customers.flatMap((customer, nth) => [
    { status: 200, body: customer },
    { status: 200, body: { ...customer, partner: { id: partners[nth]?.id, object: 'partner' } } },
    { status: 200, body: customer },
    { status: 403, body: { error: { code: 'insufficient_scope', param: 'partners:read' } } },
    { status: 404, body: { error: { code: 'resource_not_found', param: 'id' } } },
    { status: 400, body: { error: { param: 'expand' } } },
  ]);
  t.match(answers, expected);
  t.ok(
    answers.every(({ body }, nth) => nth % 6 === 1 || body.partner === undefined),
    'what one expands is not shown to another',
  );
});

t.test('the description has the deleted marker among the shapes of every expanded relation', async (t) => {
  const { components, paths } = (await (await fetch(`${rail.address}/v1/openapi.json`)).json()) as Json;
  let relations = 0;
  for (const { get } of Object.values<Json>(paths)) {
    const expand = get?.parameters?.find(({ name }: Json) => name === 'expand');
    const $ref = get?.responses['200'].content['application/json']?.schema.$ref;
    if (!expand || !$ref) continue;
    const { properties } = components.schemas[$ref.split('/').at(-1)];
    for (const name of expand.schema.items.enum) {
      relations++;
      const shapes = properties[name].anyOf.map((shape: Json) => shape.$ref ?? shape.type);
      t.match(shapes, [/^#/, '#/components/schemas/DeletedMarker', 'null'], `${$ref} ${name}`);
    }
  }
  t.ok(relations > 20);
});
