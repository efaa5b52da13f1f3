import { readConfig } from '../config.ts';
import { dashboardOf } from '../core/metrics/dashboard.ts';
import { rulesOf } from '../core/metrics/rules.ts';
import { metrics } from '../guides/all_metrics.ts';
import { baseUrlOf } from '../service.ts';

/** `rail metrics grafana`: the dashboard that shows all metrics. */
export const printDashboard = (): void => console.log(JSON.stringify(dashboardOf(metrics, guideUrl()), null, 2));

/** `rail metrics alerts`: the rules by which Prometheus tells somebody. */
export const printRules = (): void => console.log(rulesOf(metrics, guideUrl()));

const guideUrl = (): string => `${baseUrlOf(readConfig())}/docs/operations`;
