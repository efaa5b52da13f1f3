import { readConfig } from '../config.ts';
import { dashboardOf } from '../core/metrics/dashboard.ts';
import { rulesOf } from '../core/metrics/rules.ts';
import { metrics } from '../guides/all_metrics.ts';
import { localUrl } from '../service.ts';

/** `rail metrics grafana`: the dashboard that shows all metrics. */
export const printDashboard = (): void => console.log(JSON.stringify(dashboardOf(metrics, guideUrl()), null, 2));

/** `rail metrics alerts`: the rules by which Prometheus tells somebody. */
export const printRules = (): void => console.log(rulesOf(metrics, guideUrl()));

function guideUrl(): string {
  const { BASE_URL, HOST, PORT } = readConfig();
  return `${(BASE_URL ?? localUrl(HOST, PORT)).replace(/\/+$/, '')}/docs/operations`;
}
