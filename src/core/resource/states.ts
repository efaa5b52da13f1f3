import { documentedEnum } from '../values/fields.ts';
import { Problem, type ProblemCode } from '../values/problem.ts';

/** One status of a resource: what it means, and what can happen in it. */
export interface State<Status extends string, Action extends string> {
  /** The description of the status: a clause that follows `status`: and ends without a full stop. */
  doc: string;
  /** The status that each action leads to: its own where the action changes none. An action that is not here is refused. */
  on: Partial<Record<Action, Status>>;
  /** The message of a refusal: which status the record has, and what to do instead. */
  refusal?: string;
}

/** The states of a resource, in the order in which the documentation lists them. */
export type States<Status extends string, Action extends string> = Readonly<Record<Status, State<Status, Action>>>;

/** The schema of a resource's status; its description lists what each status means. */
export const statusSchema = <Status extends string>(states: Readonly<Record<Status, { doc: string }>>) =>
  documentedEnum(
    Object.fromEntries(statusesOf(states).map((status) => [status, states[status].doc])) as Record<Status, string>,
  );

const statusesOf = <Status extends string>(states: Readonly<Record<Status, unknown>>): Status[] =>
  Object.keys(states) as Status[];

/** The statuses in which an action is possible: for conditions in SQL. */
export const statusesThat = <Status extends string, Action extends string>(
  states: States<Status, Action>,
  action: Action,
): Status[] => statusesOf(states).filter((status) => allows(states, status, action));

/** Returns whether an action is possible in a status. */
export const allows = <Status extends string, Action extends string>(
  states: States<Status, Action>,
  status: Status,
  action: Action,
): boolean => states[status].on[action] !== undefined;

/**
 * The status that an action leads to.
 * @throws Problem invalid_state_transition, or the code that is given, with the refusal of the status
 */
export function transition<Status extends string, Action extends string>(
  states: States<Status, Action>,
  status: Status,
  action: Action,
  code: ProblemCode = 'invalid_state_transition',
): Status {
  const { on, refusal = `The status is '${status}', which does not allow this.` } = states[status];
  const next = on[action];
  if (next === undefined) throw new Problem(code, refusal);
  return next;
}
