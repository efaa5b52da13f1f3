/** All metrics that any process may show. It loads what APIs and workers load. */
import '../core/jobs/fold_task.ts';
import '../core/metrics/clock.ts';
import '../core/metrics/hold.ts';
import '../core/metrics/metrics.ts';
import '../core/metrics/reader.ts';
import '../mail/outgoing.ts';
import '../products.ts';
import '../program/processors/metrics.ts';
import '../recruitment/reading/metrics.ts';
import '../recruitment/sending/look_up.ts';
import '../recruitment/sending/run.ts';
import '../webhooks/queue/metrics.ts';

export { metrics } from '../core/metrics/registry.ts';
