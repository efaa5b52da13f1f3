#!/usr/bin/env node
/**
 * `rail`, for any Node: one that cannot read what follows says so. It is no TypeScript, so that Node need not load its compiler of that, with 14 MB,
 * where all of the rest was compiled by an earlier process.
 */
import module from 'node:module';
import { join } from 'node:path';

const { node } = process.versions;
if (Number(node.split('.')[0]) >= 24 && process.features.typescript) {
  // Beside the packages, because only who may write those may say what runs.
  module.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/rail'));
  import('./main.ts');
} else {
  console.error(
    'rail: Rail needs Node 24 or later, which reads TypeScript, and this is Node ' +
      node +
      ". Install its packages with 'npm ci': they bring Node 24 to 'npx --no rail' and 'npm start'.",
  );
  process.exitCode = 1;
}
