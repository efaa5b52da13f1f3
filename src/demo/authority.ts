import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A server's key and certificate, as `tls.createServer` takes them. */
export interface Identity {
  key: string;
  cert: string;
}

export interface Subject {
  /** The one DNS name that it is for. */
  name: string;
  not_before?: Date;
  not_after?: Date;
  /** Unset: an elliptic curve. */
  key_type?: 'rsa';
}

export interface Authority {
  /** Its own certificate: whoever trusts that trusts what it issues. */
  cert: string;
  issue(subject: Subject): Identity;
}

const year_ms = 365 * 86_400_000;

/**
 * A certificate authority of the demo and of the tests: ECDSA on P-256, made on the spot. Its name is made unique: of two authorities with one
 * name, who trusts both takes the first for the issuer, and finds that it has not signed.
 */
export function createAuthority(kind = 'Rail demo authority'): Authority {
  const own = newKey();
  const name = `${kind} ${randomBytes(8).toString('hex')}`;
  const issuer = { name, key: own.privateKey };
  const cert = certificate({ ...own, issuer, subject: { name }, is_authority: true });
  return {
    cert,
    issue(subject) {
      const keys = subject.key_type === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : newKey();
      return { key: exported(keys.privateKey), cert: certificate({ ...keys, issuer, subject, is_authority: false }) };
    },
  };
}

/** A certificate that nobody vouches for but itself. */
export function selfSigned(subject: Subject): Identity {
  const keys = newKey();
  const issuer = { name: subject.name, key: keys.privateKey };
  return { key: exported(keys.privateKey), cert: certificate({ ...keys, issuer, subject, is_authority: false }) };
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const exported = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string;

interface Making {
  publicKey: KeyObject;
  issuer: { name: string; key: KeyObject };
  subject: Subject;
  is_authority: boolean;
}

/** X.509 version 3 (RFC 5280) in DER, as PEM. */
function certificate({ publicKey, issuer, subject, is_authority }: Making): string {
  const { name, not_before = new Date(Date.now() - year_ms), not_after = new Date(Date.now() + year_ms) } = subject;
  const extensions = [
    extension('2.5.29.19', sequence(...(is_authority ? [der(0x01, Buffer.from([0xff]))] : []))), // basicConstraints
    extension('2.5.29.17', sequence(der(0x82, Buffer.from(name, 'latin1')))), // subjectAltName
  ];
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsa_with_sha256,
    commonName(issuer.name),
    sequence(time(not_before), time(not_after)),
    commonName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(body, ecdsa_with_sha256, bits(sign('sha256', body, issuer.key)));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function der(tag: number, ...content: Buffer[]): Buffer {
  const bytes = Buffer.concat(content);
  const size = bytes.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), bytes]);
}

const sequence = (...content: Buffer[]): Buffer => der(0x30, ...content);
const integer = (bytes: Buffer): Buffer => der(0x02, bytes);
const bits = (bytes: Buffer): Buffer => der(0x03, Buffer.from([0]), bytes);
const time = (date: Date): Buffer => der(0x18, Buffer.from(date.toISOString().replace(/\.\d+|[-:T]/g, ''), 'latin1'));
const commonName = (text: string): Buffer =>
  sequence(der(0x31, sequence(identifier('2.5.4.3'), der(0x0c, Buffer.from(text)))));
const extension = (id: string, value: Buffer): Buffer => sequence(identifier(id), der(0x04, value));

function identifier(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const sevenBits = (part: number): number[] =>
    part < 128 ? [part] : [...sevenBits(part >> 7).map((byte) => byte | 128), part & 127];
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(sevenBits)]));
}

const ecdsa_with_sha256 = sequence(identifier('1.2.840.10045.4.3.2'));
