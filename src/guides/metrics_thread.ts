/** The thread that lists the metrics. It loads what only workers load, and ends with that: the process that shows the page is spared it. */
import '../core/metrics/clock.ts';
import '../core/metrics/metrics.ts';
import '../core/metrics/backlog.ts';
import '../products.ts';
import '../recruitment/reading/metrics.ts';
import '../recruitment/sending/look_up.ts';
import '../recruitment/sending/run.ts';
import '../webhooks/queue/metrics.ts';
import { type Metric, metrics } from '../core/metrics/registry.ts';
import { answerTasks } from '../core/threads/answer_tasks.ts';

answerTasks<null, Metric[]>(() => metrics);
