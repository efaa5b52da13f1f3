import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeModel } from './model.ts';
import { readTexts, train } from './training.ts';

/** `npm run train`: makes `weights.bin` again from the texts. */
writeFileSync(join(import.meta.dirname, 'weights.bin'), encodeModel(train(readTexts())));
