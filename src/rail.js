#!/usr/bin/env node
/** `rail`, for any Node: one that cannot read what follows says so. */
const { node } = process.versions;
if (Number(node.split('.')[0]) >= 24 && process.features.typescript) {
  import('./main.ts');
} else {
  console.error(
    'rail: Rail needs Node 24 or later, which reads TypeScript, and this is Node ' +
      node +
      ". Install its packages with 'npm ci': they bring Node 24 to 'npx --no rail' and 'npm start'.",
  );
  process.exitCode = 1;
}
