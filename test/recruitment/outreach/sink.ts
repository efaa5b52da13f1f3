/** What stands at the other end of SMTP: it notes each email that it accepted, and can be told how to answer. */
import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from 'smtp-server';

export interface Accepted {
  to: string;
  message_id: string;
  text: string;
  /** When the server answered 354: from then on the email was on its way. */
  begun_at: number;
  accepted_at: number;
}

export interface Sink {
  handlers: Pick<SMTPServerOptions, 'onMailFrom' | 'onRcptTo' | 'onData' | 'onAuth'>;
  accepted: Accepted[];
  acceptedBy(to: string): Accepted[];
  /** What happens to recipients, by their address; others are accepted. */
  script: Map<string, Script>;
}

export interface Script {
  /** Before 354. An error refuses the recipient. */
  rcpt?(): Promise<void> | void;
  /** After the final dot, before it is noted. */
  end?(session: SMTPServerSession): Promise<void> | void;
  /** After it was noted, before 250. */
  accepted?(session: SMTPServerSession): Promise<void> | void;
}

/** A refusal by its reply code and text. */
export const refusal = (responseCode: number, text: string): Error => Object.assign(new Error(text), { responseCode });

export async function startSink(): Promise<Sink> {
  const accepted: Accepted[] = [];
  const script = new Map<string, Script>();
  const answered = (work: Promise<void>, callback: (error?: Error | null) => void) =>
    void work.then(
      () => callback(),
      (error: Error) => callback(error),
    );
  const recipient = (session: SMTPServerSession): string => session.envelope.rcptTo[0]?.address ?? '';
  async function take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const to = recipient(session);
    const begun_at = performance.now();
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    await script.get(to)?.end?.(session);
    const message_id = /^message-id: <([^>]+)>/im.exec(text)?.[1] ?? '';
    accepted.push({ to, message_id, text, begun_at, accepted_at: performance.now() });
    await script.get(to)?.accepted?.(session);
  }
  return {
    handlers: {
      onRcptTo: ({ address }, _session, callback) => answered(Promise.resolve(script.get(address)?.rcpt?.()), callback),
      onData: (stream, session, callback) => answered(take(stream, session), callback),
    },
    accepted,
    acceptedBy: (to) => accepted.filter((one) => one.to === to),
    script,
  };
}
