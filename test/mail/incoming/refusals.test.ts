/** Tries refusals in the words of many servers: whether the address is dead, and whether they block the sender. */
import t from 'tap';
import { classifyRefusal, isBlock } from '../../../src/mail/incoming/bounces/verdict.ts';

const classify = (text: string, status = '5.0.0') => classifyRefusal({ action: 'failed', status, text, context: '' });
const lines = (text: string): string[] => text.split('\n').flatMap((line) => line.trim() || []);

const dead = lines(`
  550 No such user here
  550 Account not found
  550 ADDRESS_NOT_FOUND
  550 UserUnknown
  550 nonexistent user
  550 Non existent account
  550 user quit
  550 was not found in LDAP server
  550 Not existing local user
  550 grace@blog.example does not exist
  550 This address no longer accepts mail.
  550 This is not a valid email address
  550 This server doesn't handle mail for that user
  550 No one with that email address here
  550 There is nobody with this name here
  550 Mailbox for grace@blog.example is not hosted on this system
  550 the addressee could not be identified
  550 unable to validate recipient: no such entry
  550 No valid destination mailbox found
  550-I'm sorry but grace@blog.example does not have an account here. I will not accept this
  540-'Error: Wrong recipients'
  No such mail drop defined.
  550 is no longer an employee
  550 Sorry, that person doesn't work here anymore
  550 grace has changed address to g@new.example
  550 mailbox is unavailable: account was removed by its owner
  Destinatario errato
  550 Adressat unbekannt
  Die E-Mail-Adresse konnte nicht gefunden werden
  Postfach nicht vorhanden
  L'adresse de messagerie n'a pas été trouvée
  Cette adresse n'existe pas
  La dirección de correo electrónico no se encuentra
  Questo utente non esiste
  Esse endereço não existe
  550 gebruiker onbekend
  550 okänd mottagare
  550 uzytkownik nie istnieje
  550 Nie ma takiego konta
  Пользователь не найден
  ユーザーが見つかりません
  用户不存在
  550 존재하지 않는 사용자
  Could not resolve domain blog.example
  No route to domain: blog.example is not a valid domain
  no route found to domain blog.example from server mx
  Invalid domain name
  Domain name not found
  Destination seem to reject all mails
  an MX or SRV record indicated no SMTP service
  550 We do not accept mail at this host
  521 Server does not accept mail
  Domain is parked and receives no mail
`);

const blocked = lines(`
  550 Your reputation is too low to deliver here
  554 rejected, your sending IP is listed
  550 spam detected by our content scanner
  550 DKIM signature missing or invalid
  550 your domain has no SPF record
  550 Our rules reject this: refused due to recipient preferences
  550 you have been blocked by the recipient
  550 message rejected due to user rules
  550 the recipient is only accepting mail from specific addresses
  550 Callback setup failed while verifying <ada@shop.example>: user unknown
  550 sender verify failed: user unknown
  554 unknown user ada@shop.example is not allowed to send
  550 Too many invalid recipients
  550 HELO: invalid domain name
  550 too many messages from you today
  550 message contains a virus
`);

const undelivered = lines(`
  552 sorry, no mailbox space
  550 The mailbox of the recipient has no more room, over quota
  User has exhausted allowed storage space
  Das Postfach des Empfängers ist voll
  La boîte de réception est pleine
  El buzón está lleno
  The user(s) account is temporarily limited.
  550 the mailbox has been disabled by the administrator
  550 this account is not active
  retry timeout exceeded
  Gave up after 48 hours
  connect to mx.blog.example: Operation timed out
  No route to host
  554 hop limit exceeded, mail loop
  550 local configuration error
`);

t.test('an address is dead where the words say so, in any language', (t) => {
  for (const text of dead) t.equal(classify(text).hard, true, text);
  t.end();
});

t.test('a block is about whoever sends: the address is not dead', (t) => {
  for (const text of blocked) {
    t.equal(classify(text).hard, false, text);
    t.ok(isBlock(classify(text)), text);
  }
  t.ok(isBlock(classify('550 zxcv', '5.7.1')), 'any 5.7.x');
  t.notOk(isBlock(classify('550 user unknown', '5.1.1')));
  t.end();
});

t.test('whatever may pass is neither', (t) => {
  for (const text of undelivered) {
    t.equal(classify(text).hard, false, text);
    t.notOk(isBlock(classify(text)), text);
  }
  t.end();
});

t.test("a resolver's word that there is no domain is final under 4.x.x too, other words are not", (t) => {
  const gone = "DNS Error: DNS type 'mx' lookup of blog.example responded with code NXDOMAIN";
  t.ok(classify(gone, '4.0.0').hard);
  t.ok(classify("Your message wasn't delivered because the domain blog.example couldn't be found.", '4.0.0').hard);
  t.notOk(classify('450 user unknown', '4.1.1').hard);
  t.notOk(classify('Host or domain name not found: temporary lookup failure', '4.4.3').hard);
  t.end();
});
