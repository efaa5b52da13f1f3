import { Problem } from '../../../core/values/problem.ts';
import { railIdentifier } from './identifier.ts';
import {
  type BankErrorCode,
  type BankOutcome,
  bankErrorCode,
  bankOutcome,
  isOfForm,
  type Reason,
  reasonOf,
  saysDuplicate,
} from './reason.ts';
import { child, children, type Element, refused, text, textOf, timeOf } from './report_xml.ts';

/** The bank's status of a file, a payment information block, or a transfer. */
export interface BankStatus extends Reason {
  /** GrpSts, PmtInfSts or TxSts. Null: the bank gives none. */
  status: string | null;
  outcome: BankOutcome;
  /** Null: not failed. */
  error_code: BankErrorCode | null;
  /** It failed with its file or block, or for the form of what was uploaded: a copy of a file that the bank has can fail so too. */
  of_file: boolean;
}

export interface BlockStatus extends BankStatus {
  payment_information_id: string | null;
}

export interface TransferStatus extends BankStatus {
  /** The attempt's key. */
  end_to_end_id: string;
  payment_information_id: string | null;
  /** The time of settlement where the bank gives it, else the time of the report. Null: neither is given. */
  at: string | null;
  /** The bank's reference. */
  external_id: string | null;
  /** The reason why it is ignored: it cannot be read, or contradicts itself. Its outcome is `waiting` then. */
  ignored_because: string | null;
}

export interface StatusReport {
  kind: 'pain.002';
  /** The MsgId of the file that is reported on. */
  message_id: string;
  /** The MsgId of the report. */
  report_id: string | null;
  reported_at: string | null;
  /** The status of the file. A rejection applies to each transfer of the file, listed or not. A success says nothing of its transfers. */
  group: BankStatus;
  /** The blocks, with the rejection of the file. A rejection applies to each transfer of the block, listed or not. */
  payment_informations: BlockStatus[];
  /** The transfers that the report lists, each once, with the rejections of their block and file. */
  statuses: TransferStatus[];
  /** The reasons why entries that name no transfer are ignored. */
  unnamed: string[];
}

/**
 * Reads a pain.002 payment status report (versions .03 to .14): the element CstmrPmtStsRpt.
 *
 * @throws Problem when the file is not named, or cannot be read above its transfers
 */
export function readStatusReport(report: Element): StatusReport {
  const original = child(report, 'OrgnlGrpInfAndSts');
  const message_id = text(original, 'OrgnlMsgId');
  if (message_id === null)
    throw refused(
      'OrgnlGrpInfAndSts/OrgnlMsgId is missing. Ask the bank for a report that names the file by its MsgId.',
    );
  const reported_at = timeOf(child(report, 'GrpHdr'), 'CreDtTm');
  const group = statusOf(original, 'GrpSts');
  const blocks = [...children(report, 'OrgnlPmtInfAndSts')];
  const listed = [
    ...blocks.flatMap((block) => inBlock(block, group)),
    ...transfersIn(report, null, rejectionOf(group)),
  ];
  return {
    kind: 'pain.002',
    message_id: railIdentifier(message_id),
    report_id: text(report, 'GrpHdr', 'MsgId'),
    reported_at,
    group,
    payment_informations: blocks.map((block) => blockStatus(block, group)),
    statuses: onceEach(listed.filter((one) => typeof one !== 'string')).map((transfer) => ({
      ...transfer,
      at: transfer.at ?? reported_at,
    })),
    unnamed: listed.filter((one) => typeof one === 'string'),
  };
}

/** Reads the status of a block, with the id in the file's form: it is compared with `paymentInformationId`. */
function blockStatus(block: Element, group: BankStatus): BlockStatus {
  const own = statusOf(block, 'PmtInfSts');
  return { payment_information_id: text(block, 'OrgnlPmtInfId'), ...(rejectionOf(group, own) ?? own) };
}

export const isRejected = ({ outcome }: BankStatus): boolean => ['failed', 'unchanged', 'doubtful'].includes(outcome);

/** Returns the rejection that a transfer inherits from its file or block. */
function rejectionOf(group: BankStatus, block?: BankStatus): BankStatus | undefined {
  if (!isRejected(group)) return block && isRejected(block) ? block : undefined;
  return block && isRejected(block) ? inherited(group, block) : group;
}

function inBlock(block: Element, group: BankStatus): (TransferStatus | string)[] {
  const { payment_information_id, ...own } = blockStatus(block, group);
  return transfersIn(block, payment_information_id, isRejected(own) ? own : undefined);
}

/**
 * A transfer that cannot be read keeps no other from being read.
 * @param rejection inherited from its block and file
 * @returns a text for a transfer that is not named: why it says nothing
 */
function transfersIn(
  parent: Element,
  payment_information_id: string | null,
  rejection: BankStatus | undefined,
): (TransferStatus | string)[] {
  return children(parent, 'TxInfAndSts').map((transfer, at) => {
    const end_to_end_id = idOf(transfer);
    if (end_to_end_id === null) {
      refuseUnnamedSuccess(rejection, transfer);
      return `TxInfAndSts number ${at + 1} of ${payment_information_id ?? 'the report'} has no OrgnlEndToEndId. Ask the bank to report each payment with its EndToEndId.`;
    }
    const named = { end_to_end_id: railIdentifier(end_to_end_id), payment_information_id };
    try {
      return { ...named, ...saidOf(transfer, rejection, end_to_end_id) };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return { ...named, ...nothing_said, ignored_because: error.message };
    }
  });
}

/** Null where two ids stand there as well. */
function idOf(transfer: Element): string | null {
  const ids = children(transfer, 'OrgnlEndToEndId');
  return ids.length === 1 ? textOf(ids[0]) : null;
}

/** A rejection would reach the transfer that it does not name. @throws Problem */
function refuseUnnamedSuccess(rejection: BankStatus | undefined, transfer: Element): void {
  if (!rejection || saysDuplicate(rejection) || statusOf(transfer, 'TxSts').outcome !== 'paid') return;
  throw refused(
    `The report rejects the file or payment information of a payment without OrgnlEndToEndId (${rejection.status}), and says that the payment itself is settled. Ask the bank which is true.`,
  );
}

const saidOf = (transfer: Element, rejection: BankStatus | undefined, end_to_end_id: string) => ({
  ...reachedBy(rejection, statusOf(transfer, 'TxSts'), end_to_end_id),
  at: timeOf(transfer, 'FctvIntrBkSttlmDt'),
  external_id: text(transfer, 'AcctSvcrRef'),
  ignored_because: null,
});

const nothing_said = {
  ...{ status: null, outcome: 'waiting' as const, error_code: null, of_file: false },
  ...{ reason_code: null, reason_text: null },
  ...{ at: null, external_id: null },
};

/** "A rejection of group or payment information reaches down, a success never." */
function reachedBy(rejection: BankStatus | undefined, own: BankStatus, end_to_end_id: string): BankStatus {
  if (!rejection) return own;
  // A second copy was refused as a whole: what the bank has of it is the first.
  if (saysDuplicate(rejection)) return own.outcome === 'paid' ? own : rejection;
  if (own.outcome === 'paid')
    throw refused(
      `The report rejects the file or payment information of ${end_to_end_id} (${rejection.status}), and says that the payment itself is settled (${own.status}). Ask the bank which is true.`,
    );
  return inherited(rejection, own);
}

/** The rejection of what is below another: its own where it has a reason. */
function inherited(above: BankStatus, own: BankStatus): BankStatus {
  if (saysDuplicate(above) || own.outcome === 'waiting') return above;
  return own.reason_code !== null || saysDuplicate(own) ? own : { ...above, ...withoutNulls(own) };
}

/** The texts that a status has. Its error code follows from the reason, so it goes with it. */
const withoutNulls = ({ status, reason_text }: BankStatus): Partial<BankStatus> => ({
  status,
  ...(reason_text === null ? {} : { reason_text }),
});

function statusOf(element: Element | undefined, name: string): BankStatus {
  const status = text(element, name);
  const reason = reasonOf(children(element, 'StsRsnInf'));
  const outcome = bankOutcome(status, reason);
  const has_failed = outcome === 'failed';
  return {
    ...{ status, outcome, error_code: has_failed ? bankErrorCode(reason.reason_code) : null },
    ...{ of_file: has_failed && (name !== 'TxSts' || isOfForm(reason)), ...reason },
  };
}

/** Each transfer once: the outcome that says most. A success beside a failure says nothing, and neither does one beside what cannot be read. */
function onceEach(statuses: TransferStatus[]): TransferStatus[] {
  const by_id = new Map<string, TransferStatus>();
  for (const status of statuses) {
    const before = by_id.get(status.end_to_end_id);
    by_id.set(status.end_to_end_id, before ? both(before, status) : status);
  }
  return [...by_id.values()];
}

function both(before: TransferStatus, status: TransferStatus): TransferStatus {
  if (before.ignored_because !== null) return before;
  if (contradict(before, status)) {
    const ignored_because = `The report says of ${status.end_to_end_id} both ${before.status} and ${status.status}. Ask the bank which is true.`;
    return { ...before, ...nothing_said, ignored_because };
  }
  return status.ignored_because !== null || strengthOf(status) > strengthOf(before) ? status : before;
}

/** Orders outcomes: one that may have been paid is no failure. */
const strengths: BankOutcome[] = ['waiting', 'failed', 'doubtful', 'unchanged', 'paid'];
export const strengthOf = ({ outcome }: BankStatus): number => strengths.indexOf(outcome);

const contradict = (one: BankStatus, other: BankStatus): boolean => saysBoth(one, other) || saysBoth(other, one);

const saysBoth = (one: BankStatus, other: BankStatus): boolean =>
  one.outcome === 'paid' && (other.outcome === 'failed' || other.outcome === 'doubtful');
