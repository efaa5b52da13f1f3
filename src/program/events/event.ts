import { z } from 'zod';
import type { EventDraft } from '../../core/postgres/transaction.ts';
import { draftOf } from '../../webhooks/events/event.ts';
import { catalogue } from './catalogue.ts';

type Catalogue = typeof catalogue;
export type EventName = keyof Catalogue & string;
type Data<Type extends EventName> = z.input<Catalogue[Type]['data']>;

const draft = draftOf('program', catalogue, 'partner_id');

/** A record as it is read: its `object` says what its own id is called in an event. */
type Fields<Record_> = Record_ &
  (Record_ extends { object: infer Noun extends string; id: string } ? { [Field in `${Noun}_id`]: string } : unknown);

/** The fields of a type that the record does not have, or has as something that the type does not take. */
type Uncovered<Type extends EventName, Record_> = {
  [Field in keyof Data<Type>]-?: undefined extends Data<Type>[Field]
    ? never
    : Field extends keyof Fields<Record_>
      ? Fields<Record_>[Field] extends Data<Type>[Field]
        ? never
        : Field
      : Field;
}[keyof Data<Type>];

type Extras<Type extends EventName, Record_> = Pick<Data<Type>, Uncovered<Type, Record_>> & Partial<Data<Type>>;

/**
 * An event about a record, ready for `tx.emit`: each field of its type is the extra of that name, else the record's id where the field is
 * `<object>_id`, else the record's field of that name. The compiler refuses a type whose fields these do not cover. A field that the
 * catalogue calls optional is there where the record's value is one that it takes: the `kind` of a commission is sent for clawbacks only.
 */
export function event<Type extends EventName, Record_ extends { program_id: string }>(
  type: Type,
  record: Record_,
  ...[extras]: [Uncovered<Type, Record_>] extends [never]
    ? [extras?: Partial<Data<Type>>]
    : [extras: Extras<Type, Record_>]
): EventDraft {
  const { object, id } = record as { object?: string; id?: string };
  const known: Record<string, unknown> = { ...record, ...(object ? { [`${object}_id`]: id } : {}), ...extras };
  const fields = Object.entries<z.ZodType>(catalogue[type].data.shape).filter(
    ([field, schema]) => !(schema instanceof z.ZodOptional) || schema.safeParse(known[field]).success,
  );
  const data = Object.fromEntries(fields.map(([field]) => [field, known[field]]));
  return draft(type, record.program_id, data as Data<Type>);
}
