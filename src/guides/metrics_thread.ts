/** The thread that lists the metrics: the process that shows the page is spared what it loads. */
import type { Metric } from '../core/metrics/registry.ts';
import { answerTasks } from '../core/threads/answer_tasks.ts';
import { metrics } from './all_metrics.ts';

answerTasks<null, Metric[]>(() => metrics);
