/** The tax form that a partner handed in, for who pays them: a file, never over a key, and with a code. */
import type { FastifyReply } from 'fastify';
import { Problem } from '../core/values/problem.ts';
import { readTaxForm } from '../program/partners/tax_form.ts';
import { requireConfirmed } from './form_page.ts';
import { queryOf } from './list_page.ts';
import { type DashboardVisit, readPage } from './visit.ts';

const may_see = ['owner', 'admin', 'finance'];

/** Sends the file to be kept, and not to be shown: a browser runs nothing of it. */
export async function sendTaxForm(reply: FastifyReply, visit: DashboardVisit): Promise<FastifyReply> {
  const { role, services } = visit;
  const { partner_id = '' } = queryOf(visit.request.query);
  if (!may_see.includes(role))
    throw new Problem(
      'insufficient_scope',
      `Your role, ${role}, does not allow to see tax forms. Ask an owner or an admin.`,
    );
  requireConfirmed(visit);
  const { form } = await readPage(visit, async (_, __, tx) => ({ form: await readTaxForm(tx, services, partner_id) }));
  const name = form.name.replaceAll(/[^\w.-]+/g, '_').slice(0, 100);
  return reply
    .headers({ 'Content-Type': form.media_type, 'Content-Disposition': `attachment; filename="${name}"` })
    .send(Buffer.from(form.content, 'base64'));
}
