import t from 'tap';
import { type Caller, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const [merchant, other] = [await rail.organization(), await rail.organization()];

const create = (by: Caller, custom_domain: string | null) =>
  by.request('POST', '/v1/programs', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    currency: 'USD',
    custom_domain,
  });

t.test(
  'a custom domain is unique over all organizations, and nothing is told of the program that has it',
  async (t) => {
    const { body: first } = await create(merchant, 'go.acme.example.com');
    const taken = (answer: { status: number; body: object }) => {
      t.match(answer, {
        status: 409,
        body: {
          error: {
            code: 'resource_already_exists',
            param: 'custom_domain',
            message: 'The custom_domain is already in use. Use a different one.',
          },
        },
      });
      t.notOk('existing' in answer.body);
    };
    for (const by of [merchant, other]) taken(await create(by, 'go.acme.example.com'));
    taken(await create(other, 'Go.ACME.example.com'));
    t.match(await create(other, '127.0.0.1'), { status: 400, body: { error: { param: 'custom_domain' } } });
    const { body: second } = await create(other, 'go.other.example.com');
    const patch = (custom_domain: string | null) =>
      other.request('PATCH', `/v1/programs/${second.id}`, { custom_domain, cookie_days: 7 });
    taken(await patch('go.acme.example.com'));
    t.match(await other.get(`/v1/programs/${second.id}`), { custom_domain: 'go.other.example.com', cookie_days: 60 });
    t.match(await patch('go.other.example.com'), { status: 200 }, 'its own');
    t.match(await create(other, null), { status: 201 });

    await t.test('until that program gives it up', async (t) => {
      await merchant.patch(`/v1/programs/${first.id}`, { custom_domain: null });
      t.match(await patch('go.acme.example.com'), { status: 200 });
    });

    await t.test('of many who want it at once, one gets it', async (t) => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, nth) => create(nth % 2 ? merchant : other, 'go.many.example.com')),
      );
      const statuses = answers.map(({ status }) => status).sort();
      t.same(statuses, [201, ...Array.from({ length: 19 }, () => 409)]);
    });
  },
);
