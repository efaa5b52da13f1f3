/** Jobs that wait for providers and websites share slots of their own, and so do those that wait for mail servers: no other job waits for them. */
const of_discovery = [
  'recruitment/run_search',
  'recruitment/run_scan',
  'recruitment/visit_prospect',
  'recruitment/reveal_addresses',
];
const of_mail = ['recruitment/send_from_inbox', 'recruitment/read_mailbox'];

export const slots = { [of_discovery.join(' ')]: 5, [of_mail.join(' ')]: 5 };
