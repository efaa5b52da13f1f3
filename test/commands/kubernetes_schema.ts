import { z } from 'zod';

/**
 * The fields of Kubernetes' API (1.30) that the manifests use, as its reference has them: https://kubernetes.io/docs/reference/kubernetes-api/. `kubectl apply`
 * refuses any other, or ignores it, which is worse. A new field is added here from that reference.
 */
const name = z.string().regex(/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/, 'no DNS label');
const port_name = z.string().regex(/^[a-z0-9](?:[-a-z0-9]{0,13}[a-z0-9])?$/, 'no port name');
const key = z.string().regex(/^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/, 'no key');
const labels = z.record(key, z.string().regex(/^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/, 'no label'));
const metadata = z.strictObject({ name, namespace: name, labels });
const selector = z.strictObject({ matchLabels: labels });
const count = z.int().min(0);
const port = z.int().min(1).max(65_535);
const quantity = z.string().regex(/^\d+(?:m|Ki|Mi|Gi)?$/, 'no quantity');
const id = z.int().min(1);

const probe = z.strictObject({
  httpGet: z.strictObject({ path: z.string().startsWith('/'), port: z.union([port_name, port]) }),
  ...{ timeoutSeconds: id, periodSeconds: id, failureThreshold: id.optional() },
});

const container = z.strictObject({
  ...{ name, image: z.string().min(1), args: z.array(z.string()) },
  envFrom: z.array(z.strictObject({ configMapRef: z.strictObject({ name }) })),
  env: z.array(z.strictObject({ name: z.string().regex(/^[A-Z_]+$/), value: z.string() })),
  resources: z.strictObject({
    requests: z.strictObject({ cpu: quantity, memory: quantity }),
    limits: z.strictObject({ cpu: quantity.optional(), memory: quantity }),
  }),
  securityContext: z.strictObject({
    ...{ allowPrivilegeEscalation: z.boolean(), readOnlyRootFilesystem: z.boolean() },
    capabilities: z.strictObject({ drop: z.array(z.string()) }),
  }),
  volumeMounts: z.array(
    z.strictObject({ name, mountPath: z.string().startsWith('/'), readOnly: z.boolean().optional() }),
  ),
  ports: z.array(z.strictObject({ name: port_name, containerPort: port })).optional(),
  ...{ readinessProbe: probe.optional(), livenessProbe: probe.optional(), startupProbe: probe.optional() },
});

const pod = z.strictObject({
  ...{ serviceAccountName: name, automountServiceAccountToken: z.boolean(), enableServiceLinks: z.literal(false) },
  securityContext: z.strictObject({
    ...{ runAsNonRoot: z.boolean(), runAsUser: id, runAsGroup: id, fsGroup: id },
    seccompProfile: z.strictObject({ type: z.enum(['RuntimeDefault', 'Unconfined', 'Localhost']) }),
  }),
  containers: z.array(container).min(1),
  volumes: z.array(
    z.union([
      z.strictObject({ name, secret: z.strictObject({ secretName: name, defaultMode: z.int().min(0).max(0o777) }) }),
      z.strictObject({ name, emptyDir: z.strictObject({ sizeLimit: quantity }) }),
    ]),
  ),
  restartPolicy: z.enum(['Always', 'OnFailure', 'Never']).optional(),
  terminationGracePeriodSeconds: count.optional(),
  topologySpreadConstraints: z
    .array(
      z.strictObject({
        ...{ maxSkew: id, topologyKey: key, labelSelector: selector },
        whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']),
      }),
    )
    .optional(),
});

const template = (spec: z.ZodType) =>
  z.strictObject({
    metadata: z.strictObject({ labels, annotations: z.record(key, z.string()).optional() }),
    spec,
  });

const head = <Kind extends string>(apiVersion: string, kind: Kind) => ({
  apiVersion: z.literal(apiVersion),
  kind: z.literal(kind),
  metadata,
});

export const Manifest = z.discriminatedUnion('kind', [
  z.strictObject({ ...head('v1', 'ConfigMap'), data: z.record(z.string().regex(/^[\w.-]+$/), z.string()) }),
  z.strictObject({ ...head('v1', 'ServiceAccount'), automountServiceAccountToken: z.boolean() }),
  z.strictObject({
    ...head('batch/v1', 'Job'),
    spec: z.strictObject({
      ...{ backoffLimit: count, ttlSecondsAfterFinished: count },
      // A pod of a Job may not restart always.
      template: template(pod.extend({ restartPolicy: z.enum(['OnFailure', 'Never']) })),
    }),
  }),
  z.strictObject({
    ...head('apps/v1', 'Deployment'),
    spec: z.strictObject({
      ...{ replicas: count, selector, template: template(pod) },
      strategy: z.strictObject({
        type: z.literal('RollingUpdate'),
        rollingUpdate: z.strictObject({ maxSurge: count, maxUnavailable: count }),
      }),
    }),
  }),
  z.strictObject({
    ...head('v1', 'Service'),
    spec: z.strictObject({
      selector: labels,
      ports: z.array(z.strictObject({ name: port_name, port, targetPort: z.union([port_name, port]) })),
    }),
  }),
  z.strictObject({
    ...head('policy/v1', 'PodDisruptionBudget'),
    spec: z.strictObject({ maxUnavailable: count, selector }),
  }),
]);
