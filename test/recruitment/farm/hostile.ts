import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { a, type GoldenSite, html } from './golden.ts';

const zeros = Buffer.alloc(32 * 1024 * 1024);
const bomb = (encoding: string, body: Buffer) => ({ headers: { 'content-encoding': encoding }, body });
const redirect = (location: string) => ({ status: 302, headers: { location } });
const unreachable = { golden: { outcome: 'unreachable' } };
const encoded = (charset: string, bytes: Buffer, type = 'text/html') => ({
  type,
  body: Buffer.concat([Buffer.from(charset && `<meta charset="${charset}">`), bytes]),
});

/** Hosts that forbid, stall, mislead or flood. */
export const hostile: GoldenSite[] = [
  {
    host: 'forbids-robots.com',
    pages: { '/robots.txt': { type: 'text/plain', body: 'User-agent: *\nDisallow: /' }, '/': 'x' },
    golden: { outcome: 'forbidden' },
  },
  { host: 'broken-robots.com', pages: { '/robots.txt': { status: 500 }, '/': 'x' }, golden: { outcome: 'forbidden' } },
  {
    host: 'drips-forever.com',
    pages: {
      '/': (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).write('<html>'),
    },
    ...unreachable,
  },
  { host: 'into-private.com', pages: { '/': redirect('http://10.0.0.1/admin') }, ...unreachable },
  { host: 'into-metadata.com', pages: { '/': redirect('http://169.254.169.254/latest/meta-data/') }, ...unreachable },
  { host: 'into-name.com', pages: { '/': redirect('http://inside-name.com/') }, ...unreachable },
  { host: 'inside-name.com', addresses: ['192.168.1.10'], pages: { '/': 'x' }, ...unreachable },
  { host: 'round-and-round.com', pages: { '/': redirect('/a'), '/a': redirect('/') }, ...unreachable },
  {
    host: 'gzip-flood.com',
    pages: { '/': bomb('gzip', gzipSync(zeros)) },
    golden: { evidence: [], score: [0, 0], addresses: [] },
  },
  {
    host: 'deflate-flood.com',
    pages: { '/': bomb('deflate', deflateSync(zeros)) },
    golden: { evidence: [], score: [0, 0], addresses: [] },
  },
  {
    host: 'brotli-flood.com',
    pages: { '/': bomb('br', brotliCompressSync(zeros)) },
    golden: { evidence: [], score: [0, 0], addresses: [] },
  },
  {
    host: 'nested-flood.com',
    pages: { '/': `<title>espresso</title>${'<div>'.repeat(100_000)}` },
    golden: { evidence: ['keyword espresso'], score: [8, 20], addresses: [] },
  },
  {
    host: 'latin1-page.fr',
    pages: {
      '/': encoded(
        '',
        Buffer.from(`<html lang="fr"><title>Ma cafeti\xe8re</title><p>${a('https://lacafetiere.fr/')}`, 'latin1'),
        'text/html; charset=utf-8',
      ),
    },
    golden: { language: 'fr', evidence: ['competitor_link lacafetiere.fr', 'keyword cafetière'], score: [45, 60] },
  },
  {
    host: 'shiftjis-page.jp',
    pages: {
      '/': encoded(
        'shift_jis',
        Buffer.concat([
          Buffer.from('<html lang=ja><title>'),
          Buffer.from([0x83, 0x52, 0x81, 0x5b, 0x83, 0x71, 0x81, 0x5b, 0x83, 0x81, 0x81, 0x5b, 0x83, 0x4a, 0x81, 0x5b]),
          Buffer.from('</title>'),
        ]),
      ),
    },
    golden: { language: 'ja', evidence: ['keyword コーヒーメーカー'], score: [14, 24] },
  },
  {
    host: 'picture-only.com',
    pages: { '/': { type: 'image/jpeg', body: Buffer.from([0xff, 0xd8]) } },
    golden: { outcome: 'not_html' },
  },
  { host: 'gone-for-good.com', pages: {}, golden: { outcome: 'http_error' } },
  {
    host: 'link-flood.com',
    pages: {
      '/': html({
        lang: 'en',
        title: 'Links',
        body:
          Array.from({ length: 3_000 }, (_, nth) => a(`https://site${nth}.com/`, `${nth}`)).join('') +
          a('https://percolator.com/', 'last'),
      }),
    },
    golden: { language: 'en', evidence: [], score: [0, 0] },
  },
];

/** Those whose visits end by time alone. */
export const stalls: ReadonlySet<string> = new Set(['drips-forever.com']);
