-- googlemail.com and gmail.com are one host: an address with either is delivered to the same mailbox.
update program.partner
set mailbox = regexp_replace(mailbox, '@googlemail[.]com$', '@gmail.com')
where mailbox like '%@googlemail.com';
comment on column program.partner.mailbox is
  'The email with case, dots and plus tags folded, and googlemail.com as gmail.com: two partners of one mailbox are suspicious.';
