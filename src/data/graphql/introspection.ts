/**
 * Questions about the schema itself. To answer one takes CPU at a stretch, while every other request of the thread waits. The answer is the same for
 * every key.
 */
import { setImmediate as turnOfOthers } from 'node:timers/promises';
import { Kind, type OperationDefinitionNode, type SelectionSetNode } from 'graphql';
import type { Fragments } from './cost.ts';

/** The number of cached answers, each of some megabytes at most: a tool asks the same again and again. */
const most_kept = 10;
/** The longest question whose answer is cached. */
const longest_kept = 10_000;

const of_the_schema = ['__schema', '__type'];

/** The schema part of an operation: it asks for the schema `only`, for rows `also`, or for no schema. */
export type Introspection = 'only' | 'also' | 'none';

/** @param fragments none of which contains itself */
export function introspectionOf({ selectionSet }: OperationDefinitionNode, fragments: Fragments): Introspection {
  const names = new Set(rootFields(selectionSet, fragments));
  if (!of_the_schema.some((name) => names.has(name))) return 'none';
  return [...names].every((name) => name.startsWith('__')) ? 'only' : 'also';
}

const rootFields = ({ selections }: SelectionSetNode, fragments: Fragments): string[] =>
  selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection.name.value];
    const inner = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
    return inner ? rootFields(inner.selectionSet, fragments) : [];
  });

/** An answer as JSON, and whether it is the same when it is asked for again. */
export interface Made {
  json: string;
  is_lasting: boolean;
}

/** Makes one answer after the other, other requests in between, and keeps those that were made last. */
export class Introspections {
  readonly #kept = new Map<string, string>();
  #last: Promise<unknown> = Promise.resolve();

  async answer(question: string, make: () => Promise<Made>): Promise<string> {
    const kept = this.#kept.get(question);
    if (kept !== undefined) return kept;
    const answer = this.#last.then(async () => {
      await turnOfOthers();
      return this.#kept.get(question) ?? this.#keep(question, await make());
    });
    this.#last = answer.catch(() => {});
    return answer;
  }

  #keep(question: string, { json, is_lasting }: Made): string {
    if (!is_lasting || question.length > longest_kept) return json;
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= most_kept && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(question, json);
    return json;
  }
}
