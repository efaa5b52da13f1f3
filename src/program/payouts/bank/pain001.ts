import { fractionDigits } from '../../../core/values/money.ts';
import { decimal, withPoint } from './amount.ts';
import { bankIdentifier } from './identifier.ts';
import { sepaText } from './latin.ts';
import {
  type BlockTerms,
  type Creditor,
  most_of_name,
  mostDigits,
  serviceLevel,
  type Transfer,
  transferRefusal,
} from './transfer.ts';

/** The debtor: the program's rail settings. */
export interface Debtor {
  name: string;
  iban: string;
  bic: string;
}

/** A payment information block, with the totals of its transfers: they stand before the transfers in the file. */
export interface PaymentBlock extends BlockTerms {
  /** The requested execution date, `2026-12-15`. */
  execution_date: string;
  transfer_count: number;
  total_minor: bigint;
}

export interface PaymentFile {
  /** The MsgId, at most 35 characters. */
  message_id: string;
  /** ISO 8601. Fractions of a second are left out. */
  created_at: string;
  debtor: Debtor;
  /** In the order in which they are written. */
  blocks: PaymentBlock[];
}

/** The characters that are collected before they are yielded. */
const chunk_length = 32_768;
const most_of_remittance = 140;
/** The most digits of an xs:decimal in the schema. */
const most_digits = 18;

/**
 * An ISO 20022 pain.001.001.09 file, in strings of some 32 KiB. The transfers are read as they are written, so memory does not grow with them.
 * The same input gives the same bytes. Texts are converted by EPC217-08 (`sepaText`), ids by `bankIdentifier`.
 *
 * @param transfersOf the transfers of a block, in the order in which they are written
 * @throws RangeError when the transfers of a block do not have its count and total, or when one cannot be written (`transferRefusal`)
 */
export async function* pain001(
  file: PaymentFile,
  transfersOf: (block: PaymentBlock) => Iterable<Transfer> | AsyncIterable<Transfer>,
): AsyncGenerator<string> {
  let chunk = fileHeader(file);
  for (const [at, block] of file.blocks.entries()) {
    chunk += blockHeader(file, block, paymentInformationId(file.message_id, at));
    for await (const transfer of counted(block, transfersOf(block))) {
      chunk += creditTransfer(block, transfer);
      if (chunk.length < chunk_length) continue;
      yield chunk;
      chunk = '';
    }
    chunk += '</PmtInf>\n';
  }
  yield `${chunk}</CstmrCdtTrfInitn>\n</Document>\n`;
}

/** The PmtInfId of the block at this place (from 0): the MsgId and its number, without what exceeds 35 characters at the front. */
export const paymentInformationId = (message_id: string, at: number): string =>
  `${bankIdentifier(message_id)}-${at + 1}`.slice(-35);

/** Passes the transfers of a block through, and compares what came with what the file has already said. */
async function* counted(
  block: PaymentBlock,
  transfers: Iterable<Transfer> | AsyncIterable<Transfer>,
): AsyncGenerator<Transfer> {
  let count = 0;
  let total = 0n;
  for await (const transfer of transfers) {
    const refusal = transferRefusal(block, transfer);
    if (refusal) throw new RangeError(`${transfer.key} cannot be written to the file. ${refusal}`);
    count += 1;
    total += BigInt(transfer.amount_minor);
    yield transfer;
  }
  if (count === block.transfer_count && total === block.total_minor) return;
  throw new RangeError(
    `The block ${block.method} ${block.currency} of ${block.execution_date} says ${block.transfer_count} transfers of ${block.total_minor} in minor units; there are ${count} of ${total}.`,
  );
}

function fileHeader({ message_id, created_at, debtor, blocks }: PaymentFile): string {
  if (blocks.length === 0) throw new RangeError('A payment file has at least one block.');
  const count = blocks.reduce((sum, { transfer_count }) => sum + transfer_count, 0);
  return `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09">
<CstmrCdtTrfInitn>
<GrpHdr><MsgId>${bankIdentifier(message_id)}</MsgId><CreDtTm>${secondsOf(created_at)}</CreDtTm><NbOfTxs>${count}</NbOfTxs>${controlSum(blocks)}<InitgPty><Nm>${nameOf(debtor)}</Nm></InitgPty></GrpHdr>
`;
}

function blockHeader({ debtor }: PaymentFile, block: PaymentBlock, id: string): string {
  const level = serviceLevel(block);
  requirePattern(block.currency, /^[A-Z]{3}$/, 'currency of a block');
  requirePattern(block.execution_date, /^\d{4}-\d{2}-\d{2}$/, 'execution date');
  requirePattern(debtor.iban, /^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$/, 'IBAN of the debtor');
  requirePattern(debtor.bic, /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/, 'BIC of the debtor');
  const type = level ? `<PmtTpInf><SvcLvl><Cd>${level}</Cd></SvcLvl></PmtTpInf>` : '';
  return `<PmtInf><PmtInfId>${id}</PmtInfId><PmtMtd>TRF</PmtMtd><NbOfTxs>${block.transfer_count}</NbOfTxs>${controlSum([block])}${type}\
<ReqdExctnDt><Dt>${block.execution_date}</Dt></ReqdExctnDt><Dbtr><Nm>${nameOf(debtor)}</Nm></Dbtr>\
<DbtrAcct><Id><IBAN>${debtor.iban}</IBAN></Id></DbtrAcct><DbtrAgt><FinInstnId><BICFI>${debtor.bic}</BICFI></FinInstnId></DbtrAgt>\
${level === 'SEPA' ? '<ChrgBr>SLEV</ChrgBr>' : ''}
`;
}

function creditTransfer({ currency }: PaymentBlock, { key, amount_minor, creditor, remittance }: Transfer): string {
  const { agent, account } = accountOf(creditor);
  const text = sepaText(remittance, most_of_remittance);
  return `<CdtTrfTxInf><PmtId><EndToEndId>${bankIdentifier(key)}</EndToEndId></PmtId>\
<Amt><InstdAmt Ccy="${currency}">${decimal(amount_minor, currency)}</InstdAmt></Amt>\
<CdtrAgt><FinInstnId>${agent}</FinInstnId></CdtrAgt><Cdtr><Nm>${sepaText(creditor.account_holder, most_of_name)}</Nm></Cdtr>\
<CdtrAcct><Id>${account}</Id></CdtrAcct>${text ? `<RmtInf><Ustrd>${text}</Ustrd></RmtInf>` : ''}</CdtTrfTxInf>
`;
}

/** USABA is the clearing system of routing numbers in the United States. */
function accountOf(creditor: Creditor): { agent: string; account: string } {
  if ('iban' in creditor) return { agent: `<BICFI>${creditor.bic}</BICFI>`, account: `<IBAN>${creditor.iban}</IBAN>` };
  const { routing_number, account_number } = creditor;
  return {
    agent: `<ClrSysMmbId><ClrSysId><Cd>USABA</Cd></ClrSysId><MmbId>${routing_number}</MmbId></ClrSysMmbId>`,
    account: `<Othr><Id>${account_number}</Id></Othr>`,
  };
}

/** The sum of the amounts as written, whatever their currencies, as the schema has it. Left out where it exceeds the schema's 18 digits. */
function controlSum(blocks: PaymentBlock[]): string {
  const digits = mostDigits(blocks.map(({ currency }) => currency));
  const sum = blocks.reduce(
    (sum, { total_minor, currency }) => sum + total_minor * 10n ** BigInt(digits - fractionDigits(currency)),
    0n,
  );
  return String(sum).length > most_digits ? '' : `<CtrlSum>${withPoint(sum, digits)}</CtrlSum>`;
}

function nameOf({ name }: Debtor): string {
  const written = sepaText(name, most_of_name);
  if (written === '') throw new RangeError('The debtor has no name that can be written.');
  return written;
}

const secondsOf = (timestamp: string): string => `${new Date(timestamp).toISOString().slice(0, 19)}Z`;

function requirePattern(value: string, pattern: RegExp, what: string): void {
  if (!pattern.test(value)) throw new RangeError(`'${value}' is not the ${what}.`);
}
