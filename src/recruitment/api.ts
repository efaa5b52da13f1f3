import { refusingTestKeys, withoutEntries } from '../core/resource/operation.ts';
import { webhooksOf } from '../webhooks/operations.ts';
import type { ProductApi } from '../webhooks/product.ts';
import { addProspectOperations } from './add_prospect.ts';
import { brandOperations } from './brands/brand.ts';
import { teamOperations } from './brands/team_member.ts';
import { addOperations } from './campaigns/add_operations.ts';
import { campaignOperations } from './campaigns/campaign_operations.ts';
import { stopOperations } from './campaigns/end.ts';
import { inboxConnectionOperations } from './campaigns/inbox_connection.ts';
import { launchOperations } from './campaigns/launch.ts';
import { pauseOperations } from './campaigns/pause.ts';
import { statsOperations } from './campaigns/stats.ts';
import { addressOperations } from './contact/add_address.ts';
import { doNotContactOperations } from './contact/do_not_contact.ts';
import { emailListOperations } from './contact/email_address.ts';
import { activateOperations } from './deals/activate.ts';
import { dealOperations } from './deals/deal_operations.ts';
import { dealVersionOperations } from './deals/deal_version.ts';
import { deleteBrandOperations } from './delete_brand.ts';
import { revealOperations } from './discovery/reveal.ts';
import { scanOperations } from './discovery/scan.ts';
import { searchOperations, searchResultOperations } from './discovery/search.ts';
import { examples } from './examples.ts';
import { guide, test_keys } from './guide.ts';
import { importOperations } from './imports/import.ts';
import { importErrorOperations } from './imports/import_error.ts';
import { inboxHealthOperations } from './inboxes/inbox_health.ts';
import { inboxOperations } from './inboxes/inbox_operations.ts';
import { listOperations } from './lists/list.ts';
import { listProspectOperations } from './lists/list_prospect.ts';
import { personalDataOperations } from './personal_data.ts';
import { creditOperations } from './plan/credit.ts';
import { planOperations } from './plan/plan.ts';
import { activityOperations } from './prospects/activity.ts';
import { assignOperations } from './prospects/assign.ts';
import { bulkOperations } from './prospects/bulk.ts';
import { signUpOperations } from './prospects/invite.ts';
import { noteOperations } from './prospects/note.ts';
import { refusingSamples } from './prospects/prospect.ts';
import { readProspectOperations } from './prospects/read.ts';
import { saveOperations } from './prospects/save.ts';
import { stageOperations } from './prospects/stage.ts';
import { removeMemberOperations } from './remove_member.ts';
import { reportOperations } from './reports/report.ts';
import { searchProviderOperations } from './search_providers/search_provider.ts';
import { answerOperations } from './threads/answer.ts';
import { inviteOperations } from './threads/invitation.ts';
import { sequenceOperations } from './threads/sequence_operations.ts';
import { testEmailOperations } from './threads/test_email.ts';
import { messageOperations, threadOperations } from './threads/thread_operations.ts';
import { mountUnsubscribing } from './unsubscribing/page.ts';
import { events } from './webhooks.ts';

/** They change nothing. */
const questions = ['campaigns.preview', 'campaigns.preflight'];

/** The API of the recruitment service. */
export const api: ProductApi = {
  summary: 'Find prospective affiliates, manage them through a pipeline, and receive signed webhooks.',
  guide,
  test_keys,
  examples,
  operations: withoutEntries(
    [
      ...brandOperations,
      ...deleteBrandOperations,
      ...teamOperations,
      ...removeMemberOperations,
      ...searchOperations,
      ...searchResultOperations,
      ...searchProviderOperations,
      ...scanOperations,
      ...revealOperations,
      ...readProspectOperations,
      ...addProspectOperations,
      ...importOperations,
      ...importErrorOperations,
      ...saveOperations,
      ...stageOperations,
      ...assignOperations,
      ...inviteOperations,
      ...signUpOperations,
      ...bulkOperations,
      ...activityOperations,
      ...personalDataOperations,
      ...emailListOperations,
      ...addressOperations,
      ...noteOperations,
      ...listOperations,
      ...listProspectOperations,
      ...doNotContactOperations,
      ...dealOperations,
      ...activateOperations,
      ...dealVersionOperations,
      ...inboxOperations,
      ...inboxHealthOperations,
      ...inboxConnectionOperations,
      ...campaignOperations,
      ...addOperations,
      ...launchOperations,
      ...testEmailOperations,
      ...statsOperations,
      ...pauseOperations,
      ...stopOperations,
      ...sequenceOperations,
      ...messageOperations,
      ...threadOperations,
      ...reportOperations,
      ...answerOperations,
      ...planOperations,
      ...creditOperations,
      ...webhooksOf(events),
    ],
    questions,
  ).map((operation) => refusingSamples(refusingTestKeys(operation))),
  scopes: [
    'brands:read',
    'brands:write',
    'team:read',
    'team:write',
    'searches:read',
    'searches:write',
    'scans:read',
    'scans:write',
    'prospects:read',
    'prospects:write',
    'lists:read',
    'lists:write',
    'notes:read',
    'notes:write',
    'do_not_contact:read',
    'do_not_contact:write',
    'deals:read',
    'deals:write',
    'inboxes:read',
    'inboxes:write',
    'campaigns:read',
    'campaigns:write',
    'sequences:read',
    'sequences:write',
    'messages:read',
    'messages:write',
    'reports:read',
    'plan:read',
    'plan:write',
    'recruitment_webhooks:read',
    'recruitment_webhooks:write',
  ],
  mountRoutes: mountUnsubscribing,
};
