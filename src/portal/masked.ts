/** Customers as their partners see them: enough to know one again, and too little to write to. */

interface Known {
  email: string | null;
  name: string | null;
}

/** `j…@g….com` of `jane@gmail.com`; the initials where there is no address, and a dash where nothing is known. */
export function masked({ email, name }: Known): string {
  if (email !== null) return maskedEmail(email);
  const initials = (name ?? '').split(/\s+/).map((word) => [...word][0] ?? '');
  return initials.join('') === '' ? '–' : `${initials.join('. ')}.`;
}

function maskedEmail(email: string): string {
  const at = email.lastIndexOf('@');
  const domain = email.slice(at + 1);
  const dot = domain.lastIndexOf('.');
  const ending = dot > 0 ? domain.slice(dot) : '';
  return `${[...email][0] ?? ''}…@${[...domain][0] ?? ''}…${ending}`;
}
