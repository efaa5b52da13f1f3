import t from 'tap';
import { railSignature, signatureOf, verifySignature } from '../../../src/core/encryption/signature.ts';
import { type Caller, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });

const body = JSON.stringify({ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' });
const now = () => Math.floor(Date.now() / 1_000);
const create = (caller: Caller, signature?: string, text = body) =>
  caller.request('POST', '/v1/programs', text, signature === undefined ? {} : { 'Rail-Signature': signature });

t.test('a signed request is verified even when its key does not require it', async (t) => {
  const merchant = await rail.organization();
  t.equal((await create(merchant, railSignature([merchant.key], now(), body))).status, 201);
  t.equal((await create(merchant)).status, 201);
  const wrong = await create(merchant, railSignature(['another key'], now(), body));
  t.equal(wrong.status, 401);
  t.match(wrong.body.error, { type: 'authentication_error', code: 'signature_invalid', param: 'Rail-Signature' });
});

t.test('a signature of another body, another time, or in no known form is invalid', async (t) => {
  const merchant = await rail.organization();
  const signature = railSignature([merchant.key], now(), body);
  const malformed = [
    '',
    'v1=',
    't=now,v1=00',
    `t=${now()}`,
    signature.replace(/^t=\d+/, `t=${now() - 1}`),
    signature.replace('v1=', 'v0='),
    `t=${now()},v1=${signatureOf(merchant.key, now(), body).toUpperCase()}`,
  ];
  for (const one of malformed) {
    const { status, body: answer } = await create(merchant, one);
    t.equal(status, 401, one);
    t.equal(answer.error.code, 'signature_invalid', one);
  }
  t.equal((await create(merchant, signature, ` ${body}`)).body.error.code, 'signature_invalid');
});

t.test('any matching v1 is valid, as long as one is', async (t) => {
  const merchant = await rail.organization();
  t.equal((await create(merchant, railSignature(['old', merchant.key], now(), body))).status, 201);
  t.equal((await create(merchant, railSignature(['old', 'older'], now(), body))).status, 401);
});

t.test('a signature is good for five minutes on both sides of the clock', (t) => {
  const at_ms = 1_800_000_000_000;
  const verify = (offset_s: number) =>
    verifySignature(railSignature(['key'], at_ms / 1_000 + offset_s, body), 'key', body, at_ms);
  for (const offset of [-300, -299, 0, 299, 300]) t.doesNotThrow(() => verify(offset), `${offset} seconds`);
  for (const offset of [-301, 301, -3_600, 3_600]) {
    t.throws(() => verify(offset), { code: 'signature_expired' }, `${offset} seconds`);
  }
  t.end();
});

t.test('an old signature answers 401 signature_expired, a recent one does not', async (t) => {
  const merchant = await rail.organization();
  for (const offset of [-330, 330]) {
    const { status, body: answer } = await create(merchant, railSignature([merchant.key], now() + offset, body));
    t.equal(status, 401);
    t.equal(answer.error.code, 'signature_expired');
  }
  for (const offset of [-240, 240]) {
    t.equal((await create(merchant, railSignature([merchant.key], now() + offset, body))).status, 201);
  }
});

t.test('POST /v1/inbound_signing makes signatures mandatory for the key that calls it, and for no other', async (t) => {
  const merchant = await rail.organization({ rate_limit: 25 });
  const colleague = await rail.key(merchant.organization_id);
  const answer = await merchant.request('POST', '/v1/inbound_signing', { required: true });
  t.equal(answer.status, 200);
  t.match(answer.body, { object: 'inbound_signing', key_id: /^key_/, required: true, updated_at: /Z$/ });

  for (const refused of [await create(merchant), await merchant.request('GET', '/v1/programs')]) {
    t.equal(refused.status, 401);
    t.match(refused.body.error, { type: 'authentication_error', code: 'signature_required' });
  }
  t.equal((await create(merchant, railSignature([merchant.key], now(), body))).status, 201);
  t.equal((await create(colleague)).status, 201);

  t.test('a GET is signed over its time and an empty body', async (t) => {
    const get = (signed: string) =>
      merchant.request('GET', '/v1/programs', undefined, {
        'Rail-Signature': railSignature([merchant.key], now(), signed),
      });
    t.equal((await get('')).status, 200);
    t.equal((await get('{}')).body.error.code, 'signature_invalid');
  });

  t.test('a DELETE without a body too', async (t) => {
    const path = '/v1/webhook_endpoints/whe_nothing';
    const { status } = await merchant.request('DELETE', path, undefined, {
      'Rail-Signature': railSignature([merchant.key], now(), ''),
    });
    t.equal(status, 404);
  });

  t.test('a signed request can make them optional again', async (t) => {
    const off = JSON.stringify({ required: false });
    const unsigned = await merchant.request('POST', '/v1/inbound_signing', off);
    t.equal(unsigned.body.error.code, 'signature_required');
    const signed = await merchant.request('POST', '/v1/inbound_signing', off, {
      'Rail-Signature': railSignature([merchant.key], now(), off),
    });
    t.equal(signed.body.required, false);
    t.equal((await create(merchant)).status, 201);
  });
});

t.test('the signature is over the bytes as they were sent', async (t) => {
  const merchant = await rail.organization({ rate_limit: 25 });
  const spaced = '{ "name" : "Ac\\u006de – größer",  "website_url":"https://acme.example.com","currency":"USD" }\n';
  t.equal((await create(merchant, railSignature([merchant.key], now(), spaced), spaced)).status, 201);
});

t.test('a key that requires signatures cannot be probed for what is wrong with a body', async (t) => {
  const merchant = await rail.organization({ rate_limit: 25 });
  await merchant.post('/v1/inbound_signing', { required: true });
  t.equal((await create(merchant, undefined, '{"misspelt":1}')).body.error.code, 'signature_required');
});
