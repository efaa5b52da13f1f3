import t from 'tap';
import { startDemoWorld } from '../../src/demo/demo_world.ts';
import { eventually, startRail } from '../harness.ts';

const base = '/recruitment/v1';
const world = await startDemoWorld({ search_credentials: {} } as never);
t.teardown(() => world.close());
const { name_servers, search_credentials, visit_interval_ms } = world.services;
const rail = await startRail({ own: { name_servers, search_credentials, visit_interval_ms } });

t.test('finds the websites of the demo, and the addresses of those who write them', async (t) => {
  const caller = await rail.organization();
  const { website_url } = world.fields;
  const brand = { name: 'Acme', website_url, keywords: ['espresso'], competitors: ['percolator-rail-demo.com'] };
  const { id: brand_id } = await caller.post(`${base}/brands`, brand);
  const scans = () => caller.get(`${base}/scans?brand_id=${brand_id}`);
  await eventually(async () => (await scans()).data[0]?.state === 'done', 'the first scan');
  const { data } = await caller.get(`${base}/prospects?brand_id=${brand_id}&q=grind`);
  t.match(data, [{ key: 'dailygrind-rail-demo.com', evidence: [{ kind: 'competitor_link' }, { kind: 'keyword' }] }]);
  await caller.post(`${base}/prospects/${data[0].id}/reveal`);
  const emails = () => caller.get(`${base}/prospects/${data[0].id}/emails`);
  await eventually(async () => (await emails()).data[0]?.email === 'lena@dailygrind-rail-demo.com', 'the address');
});

t.test('has a mailbox whose both logins work, beside that of another world in the process', async (t) => {
  const caller = await rail.organization();
  const other = await startDemoWorld({ search_credentials: {} } as never);
  t.teardown(() => other.close());
  for (const { fields } of [world, other]) {
    const { inbox_email, mail_username, mail_password, smtp_port, imap_port } = fields;
    const server = { host: 'localhost', security: 'tls', username: mail_username, password: mail_password };
    const email = fields === world.fields ? inbox_email : `other-${inbox_email}`;
    const inbox = await caller.post(`${base}/inboxes`, {
      ...{ email, from_name: 'Grace' },
      smtp: { ...server, port: Number(smtp_port) },
      imap: { ...server, port: Number(imap_port) },
    });
    t.match(inbox, { email, status: 'connected' });
  }
});
