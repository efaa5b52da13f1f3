/** The other end of SMTP: notes each email that it accepted, and can be told how to answer. */
import type { Socket } from 'node:net';
import type { SMTPServer, SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from 'smtp-server';

export interface Accepted {
  to: string;
  message_id: string;
  text: string;
  /** The time at which the server answered 354: from then on the email was on its way. */
  begun_at: number;
  accepted_at: number;
}

export interface Sink {
  handlers: Pick<SMTPServerOptions, 'onRcptTo' | 'onData'>;
  /** The connections, by the id of their session, once they have named a recipient. */
  sessions: Map<string, Socket>;
  accepted: Accepted[];
  acceptedBy(to: string): Accepted[];
  /** The answers to recipients, by their address; others are accepted. */
  script: Map<string, Script>;
}

export interface Script {
  /** Before 354. An error refuses the recipient. */
  rcpt?(): Promise<void> | void;
  /** Called when the data begins. */
  begun?(session: SMTPServerSession): void;
  /** After the final dot, before it is noted. */
  end?(session: SMTPServerSession): Promise<void> | void;
  /** After it was noted, before 250. @returns what follows that, if it is not the usual text */
  accepted?(session: SMTPServerSession): unknown;
}

/** A refusal by its reply code and text. */
export const refusal = (responseCode: number, text: string): Error => Object.assign(new Error(text), { responseCode });

export async function startSink(): Promise<Sink> {
  const accepted: Accepted[] = [];
  const by_recipient = new Map<string, Accepted[]>();
  const script = new Map<string, Script>();
  const answered = (work: Promise<unknown>, callback: (error?: Error | null, text?: string) => void) =>
    void work.then(
      (text) => callback(null, typeof text === 'string' ? text : undefined),
      (error: Error) => callback(error),
    );
  const recipient = (session: SMTPServerSession): string => session.envelope.rcptTo[0]?.address ?? '';
  async function take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<unknown> {
    const to = recipient(session);
    const begun_at = performance.now();
    script.get(to)?.begun?.(session);
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    await script.get(to)?.end?.(session);
    const message_id = /^message-id: <([^>]+)>/im.exec(text)?.[1] ?? '';
    const one = { to, message_id, text, begun_at, accepted_at: performance.now() };
    accepted.push(one);
    by_recipient.set(to, [...(by_recipient.get(to) ?? []), one]);
    return script.get(to)?.accepted?.(session);
  }
  const sessions = new Map<string, Socket>();
  /** The server is what a handler is called on; its connections are not in its types. */
  const noteSocket = (server: unknown, session: SMTPServerSession) => {
    const { connections } = server as { connections: Set<{ session: SMTPServerSession; _socket: Socket }> };
    const connection = [...connections].find((one) => one.session === session);
    if (connection) sessions.set(session.id, connection._socket);
  };
  return {
    sessions,
    handlers: {
      onRcptTo: ({ address }, _session, callback) => answered((async () => script.get(address)?.rcpt?.())(), callback),
      onData(this: SMTPServer, stream, session, callback) {
        noteSocket(this, session);
        answered(take(stream, session), callback);
      },
    },
    accepted,
    acceptedBy: (to) => by_recipient.get(to) ?? [],
    script,
  };
}
