import { refusingTestKeys } from '../core/resource/operation.ts';
import { webhooksOf } from '../webhooks/operations.ts';
import type { Product } from '../webhooks/product.ts';
import { brandOperations } from './brands/brand.ts';
import { teamOperations } from './brands/team_member.ts';
import { searchProviderOperations } from './discovery/credentials/search_provider.ts';
import { examples } from './examples.ts';
import { guide, test_keys } from './guide.ts';
import { creditOperations } from './plan/credit.ts';
import { planOperations } from './plan/plan.ts';
import { removeMemberOperations } from './remove_member.ts';
import { events } from './webhooks.ts';

/** The recruitment service. */
export const recruitment: Product = {
  name: 'recruitment',
  title: 'Rail Recruitment',
  summary: 'Recruiting affiliates: signed webhooks of the service that finds prospects and writes to them.',
  guide,
  test_keys,
  examples,
  events,
  operations: [
    ...brandOperations,
    ...teamOperations,
    ...removeMemberOperations,
    ...searchProviderOperations,
    ...planOperations,
    ...creditOperations,
    ...webhooksOf(events),
  ].map(refusingTestKeys),
  scopes: [
    'brands:read',
    'brands:write',
    'team:read',
    'team:write',
    'searches:read',
    'searches:write',
    'plan:read',
    'plan:write',
    'recruitment_webhooks:read',
    'recruitment_webhooks:write',
  ],
  schedules: [],
  encrypted: [{ table: 'recruitment.provider_credential', id: 'id', columns: ['credentials'] }],
  audits: ['recruitment.audit', 'recruitment.run_audit'],
};
