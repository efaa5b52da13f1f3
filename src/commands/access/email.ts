import { email } from '../../core/values/fields.ts';
import { UsageError } from '../command.ts';

/** @throws UsageError where mail could not be sent to it, naming the option that it was given by */
export function requireEmail(address: string, option: string): string {
  const { data } = email.safeParse(address);
  if (data !== undefined) return data;
  throw new UsageError(`'${address}' is not an email address. Example: ${option} ada@acme.example.com.`);
}
