/** The oracle that the address guard is checked against, and arbitrary addresses in every spelling. */
import fc from 'fast-check';

export function isListedPublic(integer: number): boolean {
  return !IPV4_RANGES.some(([first, last]) => integer >= first && integer <= last);
}

/** Returns whether an address in Node's form is public: dotted, or groups of which one run of zeros may be left out. */
export function isListedPublicAddress(address: string): boolean {
  if (!address.includes(':')) return isListedPublic(integerOf(address));
  const tail = /[^:]+\..+$/.exec(address)?.[0];
  if (tail !== undefined) {
    const integer = integerOf(tail);
    return isListedPublicAddress(address.replace(tail, `${hex(integer >>> 16)}:${hex(integer & 0xffff)}`));
  }
  const [head = [], rest = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(8 - head.length - rest.length).fill('0');
  return isListedPublic6([...head, ...zeros, ...rest].map((group) => Number.parseInt(group, 16)));
}

const integerOf = (text: string) => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

export function isListedPublic6(groups: number[]): boolean {
  const [a = 0, b = 0, c = 0] = groups;
  const [g = 0, h = 0] = groups.slice(6);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) return isListedPublic(g * 65_536 + h);
  if (a < 0x2000 || a > 0x3fff) return false;
  if (a === 0x2001) return b >= 0x200 && b !== 0xdb8;
  return a !== 0x2002 && !(a === 0x2620 && b === 0x4f && c === 0x8000) && !(a === 0x3fff && b < 0x1000);
}

const IPV4_RANGES = (
  [
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['168.63.129.16', '168.63.129.16'],
    ['169.254.0.0', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.31.196.0', '192.31.196.255'],
    ['192.52.193.0', '192.52.193.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['192.175.48.0', '192.175.48.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '255.255.255.255'],
  ] as const
).map((range) => range.map(integerOf) as [number, number]);

/** Anywhere, inside the ranges, and at their edges. */
export function ipv4(): fc.Arbitrary<number> {
  const max = 2 ** 32 - 1;
  const within = fc.constantFrom(...IPV4_RANGES).chain(([first, last]) => fc.integer({ min: first, max: last }));
  const edges = IPV4_RANGES.flatMap(([first, last]) => [first - 1, first, last, last + 1]).filter(
    (edge) => edge >= 0 && edge <= max,
  );
  return fc.oneof(fc.integer({ min: 0, max }), within, fc.constantFrom(...edges));
}

export function ipv6(): fc.Arbitrary<number[]> {
  const group = fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.constant(0));
  const starts = [
    [0x2001],
    [0x2001, 0xdb8],
    [0x2001, 0x1ff],
    [0x2001, 0x200],
    [0x2002],
    [0x2620, 0x4f, 0x8000],
    [0x3fff, 0xfff],
    [0x3fff, 0x1000],
  ];
  const otherStarts = [
    [],
    [0, 0, 0, 0, 0, 0xffff],
    [0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0xffff, 0],
    [0x64, 0xff9b],
    [0x2606],
    [0x1fff],
    [0x4000],
    [0xfe80],
  ];
  return fc
    .tuple(fc.constantFrom<number[]>(...starts, ...otherStarts), fc.array(group, { minLength: 8, maxLength: 8 }))
    .map(([start, groups]) => [...start, ...groups].slice(0, 8));
}

export const dotted = (integer: number) => [24, 16, 8, 0].map((shift) => (integer >>> shift) & 255).join('.');
export const hex = (group: number) => group.toString(16);
const fullWidth = (text: string) => text.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));

export const IPV4_SPELLINGS: ((integer: number) => string)[] = [
  dotted,
  (integer) => `${integer}`,
  (integer) => `0x${hex(integer)}`,
  (integer) => `0X${hex(integer).toUpperCase().padStart(12, '0')}`,
  (integer) => `0${integer.toString(8)}`,
  (integer) => `${integer >>> 24}.${integer & 0xffffff}`,
  (integer) => `0x${hex(integer >>> 24)}.0${((integer >>> 16) & 255).toString(8)}.${integer & 0xffff}`,
  (integer) => dotted(integer).replace(/\d+/g, (part) => `0${Number(part).toString(8)}`),
  (integer) => fullWidth(dotted(integer)),
  (integer) => dotted(integer).replaceAll('.', '。'),
  (integer) => dotted(integer).replace(/\d/g, (digit) => `%3${digit}`),
  (integer) => `${dotted(integer)}.`,
  (integer) => `[::ffff:${dotted(integer)}]`,
  (integer) => `[::FFFF:${hex(integer >>> 16)}:${hex(integer & 0xffff)}]`,
  (integer) => `[0:0:0:0:0:ffff:${hex(integer >>> 16)}:${hex(integer & 0xffff)}]:8443`,
];

export const IPV6_SPELLINGS: ((groups: number[]) => string)[] = [
  (groups) => groups.map(hex).join(':'),
  (groups) => groups.map((group) => hex(group).toUpperCase().padStart(4, '0')).join(':'),
  (groups) => new URL(`http://[${groups.map(hex).join(':')}]`).hostname.slice(1, -1),
  (groups) => `${groups.slice(0, 6).map(hex).join(':')}:${dotted((groups[6] ?? 0) * 65_536 + (groups[7] ?? 0))}`,
];
