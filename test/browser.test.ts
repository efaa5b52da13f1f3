import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { openTab } from './browser.ts';

t.test('tabs share a browser and no profile, and tell of the errors of their pages', async (t) => {
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html').end('<link rel="icon" href="data:,"><h1>Acme</h1>');
  }).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  const { port } = await new Promise<AddressInfo>((resolve) => {
    server.once('listening', () => resolve(server.address() as AddressInfo));
  });
  const [one, other] = await Promise.all([openTab(), openTab()]);
  await one.page.goto(`http://acme.test:${port}/`);
  await other.page.goto(`http://shop.acme.test:${port}/`);
  t.equal(await one.page.textContent('h1'), 'Acme');
  await one.page.evaluate(`document.cookie = 'seen=1; domain=acme.test'`);
  t.equal(await one.page.evaluate('document.cookie'), 'seen=1');
  t.equal(await other.page.evaluate('document.cookie'), '');
  t.same(one.errors, []);
  const told = one.context.waitForEvent('weberror');
  await one.page.evaluate(`console.error('one fault'); setTimeout(() => { throw new Error('another fault'); });`);
  await told;
  t.same(one.errors, ['one fault', 'another fault']);
  t.same(other.errors, []);
});
