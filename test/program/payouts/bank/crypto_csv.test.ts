import t from 'tap';
import { type CryptoPayout, cryptoCsv } from '../../../../src/program/payouts/bank/crypto_csv.ts';

const payout: CryptoPayout = {
  payout_id: 'pyt_01h455vb4pex5vsknk084sn02q',
  partner: 'Ada Lovelace',
  network: 'ethereum',
  address: '0x52908400098527886E0F7030069857D2E4169EE7',
  amount_minor: 12345,
  currency: 'USD',
  reference: 'pyt_01h455vb4pex5vsknk084sn02q-1',
};
const written = async (...payouts: CryptoPayout[]): Promise<string> =>
  (await Array.fromAsync(cryptoCsv(payouts))).join('');

t.test('writes a header and a line for each payout', async (t) => {
  t.equal(await written(), 'payout_id,partner,network,address,amount,currency,reference\r\n');
  t.equal(
    await written(
      payout,
      { ...payout, amount_minor: 1234567, currency: 'KWD' },
      { ...payout, amount_minor: 5, currency: 'JPY' },
    ),
    [
      'payout_id,partner,network,address,amount,currency,reference',
      'pyt_01h455vb4pex5vsknk084sn02q,Ada Lovelace,ethereum,0x52908400098527886E0F7030069857D2E4169EE7,123.45,USD,pyt_01h455vb4pex5vsknk084sn02q-1',
      'pyt_01h455vb4pex5vsknk084sn02q,Ada Lovelace,ethereum,0x52908400098527886E0F7030069857D2E4169EE7,1234.567,KWD,pyt_01h455vb4pex5vsknk084sn02q-1',
      'pyt_01h455vb4pex5vsknk084sn02q,Ada Lovelace,ethereum,0x52908400098527886E0F7030069857D2E4169EE7,5,JPY,pyt_01h455vb4pex5vsknk084sn02q-1',
      '',
    ].join('\r\n'),
  );
});

t.test('lets no text be a formula or leave its cell', async (t) => {
  for (const partner of ['=1+1', '+1', '-1', '@x', '\t=1', '＝1'])
    t.match(await written({ ...payout, partner }), new RegExp(`'${partner.replace('+', '\\+')}`), partner);
  t.match(await written({ ...payout, partner: 'A "B", C\r\nD' }), '"A ""B"", C\r\nD"');
  t.match(await written({ ...payout, address: '=cmd|calc' }), "'=cmd|calc");
});
