/** An SMTP server on loopback that accepts everything, as a process of its own: `smtp_sink.ts <folder>` writes its certificate authority there. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { createAuthority } from '../../src/demo/authority.ts';

const authority = createAuthority('Rail bench mail authority');
writeFileSync(join(process.argv[2] as string, 'authority.pem'), authority.cert);
let accepted = 0;
const smtp = new SMTPServer({
  ...{
    secure: true,
    ...authority.issue({ name: 'localhost' }),
    authMethods: ['PLAIN'],
    disableReverseLookup: true,
    logger: false,
  },
  onAuth: (_auth, _session, callback) => callback(null, { user: 'grace' }),
  onData(stream, _session, callback) {
    stream.on('end', () => {
      accepted++;
      callback();
    });
    stream.resume();
  },
});
smtp.on('error', () => {});
const listening = smtp.listen(0, '127.0.0.1', () => {
  const { port } = listening.address() as { port: number };
  // Answers the number of accepted emails, and the port.
  createServer((_request, response) => response.end(JSON.stringify({ accepted, port }))).listen(
    Number(process.env.PORT),
    '127.0.0.1',
  );
});
