/**
 * Builds a catalogue's children: the service account, the configuration, the Deployment and the Service. The pods have
 * no Kubernetes API access. A catalogue that validates service account tokens gets its own account's token to read the
 * cluster's keys.
 */
import {
  availability,
  preStopDelay,
  shutdownGrace,
  terminationSeconds,
  topologySpread,
} from '../../children/serving/availability.ts'
import { ownLabels, selectorLabels } from '../../children/labels.ts'
import { catalogueNames } from '../../children/names.ts'
import { configMap, service, serviceAccount } from '../../children/objects.ts'
import { httpProbe, type PodTemplateSpec, pullSecrets } from '../../children/pod.ts'
import { podSecurity, runtimeContainerSecurity } from '../../children/security.ts'
import { deployment, replicasToApply } from '../../children/workload.ts'
import type { Fields, KubeObject, StringMap } from '../../base/kube.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import type { SyncContext } from '../../sync/context.ts'
import { exposureChildren } from '../common/exposure.ts'

type Context = SyncContext<'MCPCatalogue'>

/** Value of the app label. */
export const app = 'mcpcatalogue'
export const container = 'catalogue'
export const port = 4484
const configDirectory = '/etc/gatehouse/catalogue'
export const configFile = 'catalogue.yaml'

/** Adds the environment and volumes that every catalogue has. */
export function commonNeeds({ name }: Context, needs: PodNeeds): void {
  needs.literal('GATEHOUSE_SHUTDOWN_GRACE', shutdownGrace)
  needs.literal('HOME', '/tmp')
  needs.literal('XDG_CONFIG_HOME', '/tmp')
  needs.configFiles('catalogue-config', configDirectory, catalogueNames(name).config)
  needs.scratch('tmp', '/tmp')
}

export interface CataloguePod {
  /** The pods restart when this value changes. */
  readonly restart: string
  readonly accountToken: boolean
}

/** Returns the pod without the user's podTemplateSpec. */
export function generatedTemplate(
  { name, settings }: Context,
  needs: PodNeeds,
  { restart, accountToken }: CataloguePod,
): PodTemplateSpec {
  const selector = selectorLabels(app, name)
  return {
    metadata: { labels: selector, annotations: { 'gatehouse.dev/runconfig-checksum': restart } },
    spec: {
      serviceAccountName: catalogueNames(name).server,
      automountServiceAccountToken: accountToken,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: terminationSeconds,
      topologySpreadConstraints: topologySpread(selector),
      securityContext: podSecurity(settings),
      ...pullSecrets(undefined, settings.imagePullSecrets),
      containers: [
        {
          name: container,
          image: settings.runtimeImage,
          imagePullPolicy: 'IfNotPresent',
          args: [
            'catalogue',
            'serve',
            `--config=${configDirectory}/${configFile}`,
            '--host=0.0.0.0',
            `--port=${port}`,
          ],
          env: needs.env,
          ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
          startupProbe: httpProbe('/health', { period: 2, timeout: 3, failures: 60 }),
          livenessProbe: httpProbe('/health', { delay: 30, period: 10, timeout: 5, failures: 3 }),
          readinessProbe: httpProbe('/readyz', { period: 5, timeout: 3, failures: 3 }),
          resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '500m', memory: '256Mi' } },
          lifecycle: preStopDelay,
          volumeMounts: needs.mounts,
          securityContext: runtimeContainerSecurity(settings),
        },
      ],
      volumes: needs.volumes,
    },
  }
}

/** Returns all children in dependency order. */
export function childrenOf(context: Context, template: Fields, files: StringMap): KubeObject[] {
  const { name, namespace, settings, spec } = context
  const names = catalogueNames(name)
  const selector = selectorLabels(app, name)
  const meta = { name: names.server, namespace, labels: ownLabels(app, name) }
  const observed = context.child('Deployment', names.server)
  const { replicas } = spec
  return [
    serviceAccount(meta, settings.imagePullSecrets),
    configMap({ ...meta, name: names.config }, files),
    deployment(meta, { selector, template, replicas: replicasToApply({ replicas }, observed) }),
    ...availability(meta, { kind: 'Deployment', selector, container, observed, replicas }),
    ...exposureChildren(context, meta, { port, secure: false }),
    service(meta, { selector, port, targetPort: 'http' }),
  ]
}
