import { catalogue } from '../../src/recruitment/events/catalogue.ts';

/** All types but those of scans: a brand that a test creates is scanned once, at a time of its own. */
export const all_but_scans = Object.keys(catalogue).filter((type) => !type.startsWith('scan.'));
