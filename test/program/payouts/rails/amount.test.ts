import t from 'tap';
import { decimalOf, minorOf } from '../../../../src/program/payouts/rails/amount.ts';
import type { PayoutErrorCode, RailName } from '../../../../src/program/payouts/rails/rail.ts';
import { providerUrl, rails } from '../../../../src/program/payouts/rails/rails.ts';

t.test('writes minor units as decimals of their currency, and reads them back', async (t) => {
  for (const [minor, currency, decimal] of [
    [1, 'USD', '0.01'],
    [10, 'USD', '0.10'],
    [123_456, 'USD', '1234.56'],
    [9_007_199_254_740_991, 'USD', '90071992547409.91'],
    [0, 'JPY', '0'],
    [500, 'JPY', '500'],
    [5, 'KWD', '0.005'],
    [5_120, 'KWD', '5.120'],
    [100_050, 'HUF', '1000.50'],
    [100_000, 'TWD', '1000.00'],
  ] as const) {
    t.equal(decimalOf(minor, currency), decimal);
    t.equal(minorOf(decimal, currency), minor);
  }
  t.equal(minorOf('1.50', 'JPY'), null);
  t.equal(minorOf('1.00', 'JPY'), 1);
  t.equal(minorOf('0.7', 'USD'), 70);
  t.equal(minorOf('1e3', 'USD'), null);
  t.equal(minorOf('-1', 'USD'), null);
});

t.test('refuses what a provider cannot express, before any call', async (t) => {
  const table: [RailName, number, string, PayoutErrorCode | undefined][] = [
    ['paypal', 1980, 'USD', undefined],
    ['paypal', 500, 'JPY', undefined],
    ['paypal', 100_000, 'HUF', undefined],
    ['paypal', 100_050, 'HUF', 'provider_rejected'],
    ['paypal', 100_001, 'TWD', 'provider_rejected'],
    ['paypal', 100_000, 'TWD', undefined],
    ['paypal', 5_120, 'KWD', 'currency_not_supported'],
    ['stripe', 5_120, 'KWD', undefined],
    ['stripe', 5_124, 'KWD', 'provider_rejected'],
    ['stripe', 5_120, 'IQD', 'currency_not_supported'],
    ['stripe', 500, 'JPY', undefined],
    ['stripe', 150, 'MGA', 'provider_rejected'],
    ['stripe', 100_050, 'HUF', undefined],
    ['wise', 5_124, 'KWD', undefined],
    ['wise', 0, 'USD', 'provider_rejected'],
  ];
  for (const [rail, minor, currency, error_code] of table) {
    t.equal(rails[rail].refuse(minor, currency)?.error_code, error_code, `${rail}: ${minor} ${currency}`);
  }
});

t.test('calls the provider of the mode, or what is set in its place', async (t) => {
  t.equal(providerUrl('paypal', 'test'), 'https://api-m.sandbox.paypal.com');
  t.equal(providerUrl('wise', 'live'), 'https://api.wise.com');
  t.equal(providerUrl('wise', 'live', { wise: 'http://127.0.0.1:9' }), 'http://127.0.0.1:9');
});

t.test('names every secret among the credentials, and refuses unknown fields', async (t) => {
  for (const { name, credentials, secrets } of Object.values(rails)) {
    for (const secret of secrets) t.ok(secret in credentials.shape, `${name}.${secret}`);
    t.notOk(credentials.safeParse({ nothing: 'x' }).success);
  }
});
