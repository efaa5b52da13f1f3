import { type formats, printDictionary, readDictionary } from '../../data/dictionary.ts';
import { withStore } from '../command.ts';

/** `rail data dictionary`: what is in schema data, for people, programs or dbt. */
export const dictionary = ({ format }: { format: (typeof formats)[number] }): Promise<void> =>
  withStore(async ({ store }) => console.log(printDictionary(await readDictionary(store.database), format)));
