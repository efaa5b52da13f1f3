import { type BookingReport, readBookingReport } from './camt054.ts';
import { readStatusReport, type StatusReport } from './pain002.ts';
import { child, children, type Element, parseReport, refused } from './report_xml.ts';

export type BankReport = StatusReport | BookingReport;

/** Documents that people send by mistake. */
const other_kinds: Record<string, string> = {
  CstmrCdtTrfInitn: 'a pain.001 payment file, which goes to the bank. Send what the bank answered',
  BkToCstmrStmt: 'a camt.053 account statement. Ask the bank for a pain.002 status report or a camt.054 notification',
  BkToCstmrAcctRpt: 'a camt.052 account report. Ask the bank for a pain.002 status report or a camt.054 notification',
};

/**
 * Reads a report of a bank: a pain.002 payment status report or a camt.054 debit and credit notification, in UTF-8, at most 10 MiB. The
 * kind is known by the element in `Document`, which may stand in an envelope; name spaces are not looked at.
 *
 * @throws Problem invalid_parameter, whose message names the element and what to do
 */
export function readBankReport(file: Uint8Array | string): BankReport {
  const { name, content } = messageIn(parseReport(file));
  if (name === 'CstmrPmtStsRpt') return readStatusReport(content);
  if (name === 'BkToCstmrDbtCdtNtfctn') return readBookingReport(content);
  throw refused(
    `The report is ${other_kinds[name] ?? `the message ${name}. Send a pain.002 status report or a camt.054 notification`}.`,
  );
}

/** The one element in `Document`, by its name. */
function messageIn(file: Element): { name: string; content: Element } {
  const [root, ...others] = namesIn(file);
  if (root === undefined || others.length > 0)
    throw refused('The report has no single root element. Send the file as the bank supplied it.');
  const document = root === 'Document' ? child(file, root) : child(file, root, 'Document');
  const [name, ...more] = namesIn(document);
  if (name === undefined || more.length > 0)
    throw refused(
      `The root element is ${root}, not a Document with one message. Send a pain.002 status report or a camt.054 notification.`,
    );
  return { name, content: children(document, name)[0] as Element };
}

/** The names of the elements directly below. */
const namesIn = (element: Element | undefined): string[] =>
  typeof element === 'object'
    ? Object.keys(element)
        .filter((name) => !/^[#@]/.test(name))
        .map((name) => name.slice(0, 60))
    : [];
