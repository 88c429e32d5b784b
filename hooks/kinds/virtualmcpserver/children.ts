/**
 * Builds a virtual server's children: the service account with its Role, the configuration, the report, the Deployment
 * and the Service.
 *
 * The pods may only access their own report ConfigMap through the API. Secrets are mounted or set as environment
 * variables.
 */
import { byText } from '../../../schemas/index.ts'
import {
  availability,
  preStopDelay,
  shutdownGrace,
  topologySpread,
  terminationSeconds,
} from '../../children/serving/availability.ts'
import { ownLabels, reportLabels, selectorLabels } from '../../children/labels.ts'
import { configMap, role, roleBinding, service, serviceAccount } from '../../children/objects.ts'
import { httpProbe, type PodTemplateSpec, pullSecrets } from '../../children/pod.ts'
import { mergePodTemplate, type PodTemplateResult } from '../../children/pod-template.ts'
import { podSecurity, runtimeContainerSecurity } from '../../children/security.ts'
import { deployment, replicasToApply } from '../../children/workload.ts'
import type { SyncContext } from '../../sync/context.ts'
import type { Fields, KubeObject, StringMap } from '../../base/kube.ts'
import { virtualServerNames } from '../../children/names.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import { exposureChildren } from '../common/exposure.ts'
import { addTlsFiles, serving } from '../common/serving-tls.ts'
import { consolePorts, mcpPort } from './config/console.ts'
import { configDirectory, configFile } from './config/files.ts'

type Context = SyncContext<'VirtualMCPServer'>

/** Value of the app label, and name of the container. */
export const app = 'virtualmcpserver'
export const container = 'vmcp'
const checksumAnnotation = 'gatehouse.dev/content-checksum'
const restartAnnotation = 'gatehouse.dev/runconfig-checksum'

/**
 * Returns the pod without the user's podTemplateSpec. `restartHash` is a value that changes when the server must
 * restart.
 */
export function generatedTemplate(context: Context, needs: PodNeeds, restartHash: string): PodTemplateSpec {
  const { parent, name, settings } = context
  const { spec } = parent
  const names = virtualServerNames(name)
  const selector = selectorLabels(app, name)
  const served = serving(context)
  const debug = spec.config?.operational?.logLevel === 'debug'
  return {
    metadata: { labels: selector, annotations: { ...served.annotations, [restartAnnotation]: restartHash } },
    spec: {
      serviceAccountName: spec.serviceAccount ?? names.account,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: terminationSeconds,
      topologySpreadConstraints: topologySpread(selector),
      securityContext: podSecurity(settings),
      ...pullSecrets(spec.imagePullSecrets, settings.imagePullSecrets),
      containers: [
        served.container({
          name: container,
          image: settings.runtimeImage,
          imagePullPolicy: 'IfNotPresent',
          args: [
            'vmcp',
            'serve',
            `--config=${configDirectory}/${configFile}`,
            '--host=0.0.0.0',
            `--port=${mcpPort}`,
            ...(debug ? ['--debug'] : []),
          ],
          env: needs.env,
          ports: [
            { name: 'http', containerPort: mcpPort, protocol: 'TCP' },
            ...consolePorts(spec).map(({ name, port }) => ({
              name,
              containerPort: port,
              protocol: 'TCP' as const,
            })),
          ],
          startupProbe: httpProbe('/health', { period: 2, timeout: 3, failures: 60 }),
          livenessProbe: httpProbe('/health', { delay: 30, period: 10, timeout: 5, failures: 3 }),
          readinessProbe: httpProbe('/readyz', { period: 5, timeout: 3, failures: 3 }),
          resources: { requests: { cpu: '100m', memory: '160Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
          lifecycle: preStopDelay,
          volumeMounts: needs.mounts,
          securityContext: runtimeContainerSecurity(settings),
        }),
      ],
      volumes: needs.volumes,
    },
  }
}

/** Returns the pod with the user's podTemplateSpec. */
export function podTemplate(context: Context, needs: PodNeeds, restartHash: string): PodTemplateResult {
  const { podTemplateSpec } = context.parent.spec
  const generated = generatedTemplate(context, needs, restartHash)
  return mergePodTemplate(generated, {
    user: podTemplateSpec,
    container,
    selector: selectorLabels(app, context.name),
  })
}

/** Adds the environment and volumes that every virtual server has. */
export function commonNeeds(context: Context, needs: PodNeeds): void {
  const names = virtualServerNames(context.name)
  needs.literal('VMCP_NAME', context.name)
  needs.literal('VMCP_NAMESPACE', context.namespace)
  needs.literal('GATEHOUSE_REPORT_CONFIGMAP', names.report)
  needs.fieldEnv('GATEHOUSE_POD_NAME', 'metadata.name')
  needs.literal('GATEHOUSE_SHUTDOWN_GRACE', shutdownGrace)
  needs.literal('HOME', '/tmp')
  needs.literal('XDG_CONFIG_HOME', '/tmp')
  needs.configFiles('vmcp-config', configDirectory, names.config)
  needs.scratch('tmp', '/tmp')
  addTlsFiles(context, needs)
}

/** Returns all children in dependency order. */
export function childrenOf(
  context: Context,
  template: Fields,
  files: StringMap,
  checksum: string,
): KubeObject[] {
  const { name, namespace, parent } = context
  const { spec } = parent
  const names = virtualServerNames(name)
  const labels = ownLabels(app, name)
  const selector = selectorLabels(app, name)
  const observed = context.child('Deployment', names.server)
  return [
    ...access(context, labels),
    configMap(
      {
        name: names.config,
        namespace,
        labels: { ...labels, 'app.kubernetes.io/component': 'vmcp-config' },
        annotations: { [checksumAnnotation]: checksum },
      },
      files,
    ),
    // This ConfigMap has no data, because the pods fill it. Metacontroller never removes fields that it has not
    // applied.
    configMap({
      name: names.report,
      namespace,
      labels: { ...labels, ...reportLabels },
    }),
    deployment(
      { name: names.server, namespace, labels },
      { selector, template, replicas: replicasToApply(spec, observed) },
    ),
    ...availability(
      { name: names.server, namespace, labels },
      { kind: 'Deployment', selector, container, observed, ...spec },
    ),
    ...exposureChildren(
      context,
      { name: names.server, namespace, labels },
      { port: mcpPort, secure: serving(context).secure },
    ),
    service(
      { name: names.server, namespace, labels },
      {
        selector,
        port: mcpPort,
        targetPort: 'http',
        ports: consolePorts(spec),
        type: spec.serviceType,
        sessionAffinity: spec.sessionAffinity,
        secure: serving(context).secure,
      },
    ),
  ]
}

/**
 * Returns the account and its permissions. Returns no objects when the user sets an account, because the user then
 * manages the account's permissions.
 */
function access(context: Context, labels: StringMap): KubeObject[] {
  const { name, namespace, parent, settings } = context
  if (parent.spec.serviceAccount !== undefined) return []
  const names = virtualServerNames(name)
  const meta = { name: names.account, namespace, labels }
  const secrets = [
    ...(parent.spec.imagePullSecrets ?? []).map((item) => item.name),
    ...settings.imagePullSecrets,
  ]
  return [
    serviceAccount(meta, [...new Set(secrets)].filter((item) => item !== '').sort(byText)),
    role(meta, [
      { apiGroups: [''], resources: ['configmaps'], resourceNames: [names.report], verbs: ['get', 'patch'] },
    ]),
    roleBinding(meta, names.account),
  ]
}
