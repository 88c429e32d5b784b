/**
 * The settings of an installation with their defaults, meanings and rules: one table for the plain manifests, and for the
 * chart's values, their schema and its README.
 */
import { hooksSpread } from '../selectors.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

export interface Setting {
  /** `section.name`, or a name that stands alone. */
  readonly path: string
  readonly default: Json
  readonly comment: string
  /** The only values there are. */
  readonly oneOf?: readonly string[]
  /** Rules of JSON Schema beyond the type of the default. */
  readonly rules?: object
}

const resources = (cpu: string, memory: string, limit: string): Json => ({
  requests: { cpu, memory },
  limits: { memory: limit },
})

/** Selectors go by some of these, and they are not the user's to change. */
const texts = { additionalProperties: { type: 'string' } }
const labelRules = {
  ...texts,
  propertyNames: {
    not: { pattern: '^(app\\.kubernetes\\.io/(name|component|part-of|version)|gatehouse\\.dev/)' },
  },
}
/** Five fields, or one word: the form, short enough for Helm to print. Which numbers a field may have, the API server says. */
const cronField = '[0-9A-Za-z*?,/-]+'
const schedule = { pattern: `^(@[a-z]+( [0-9a-z]+)?|${cronField}( +${cronField}){4})$` }
const duration = { pattern: '^([0-9]+(\\.[0-9]+)?(s|m|h))+$' }
const secretNames = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' }

/** In the order of `values.yaml`. */
export function settings(version: string): readonly Setting[] {
  return [...imageSettings(version), ...hooksSettings, ...objectSettings, ...platformSettings]
}

function imageSettings(version: string): readonly Setting[] {
  return [
    {
      path: 'images.hooks',
      default: `ghcr.io/gatehouse-dev/gatehouse-hooks:${version}`,
      comment: 'Image of the hooks server and of the certificate jobs; a digest is welcome.',
    },
    {
      path: 'images.runtime',
      default: `ghcr.io/gatehouse-dev/gatehouse:${version}`,
      comment: 'Image that the hooks put into generated pods: virtual servers and proxies.',
    },
    {
      path: 'images.pullPolicy',
      default: 'IfNotPresent',
      oneOf: ['Always', 'IfNotPresent', 'Never'],
      comment: "When the images of the chart's own pods are pulled.",
    },
    {
      path: 'images.pullSecrets',
      default: [],
      comment: "Secrets for pulling the images of the chart's own pods: a list of {name}.",
    },
    {
      path: 'images.runtimePullSecrets',
      default: [],
      rules: { items: secretNames },
      comment:
        'Names of Secrets for pulling the images of generated pods, which must be in the namespace of each pod.',
    },
  ]
}

const hooksSettings: readonly Setting[] = [
  { path: 'hooks.replicas', default: 2, comment: 'Pods of the hooks server.' },
  {
    path: 'hooks.resources',
    default: resources('50m', '128Mi', '512Mi'),
    comment: 'The memory limit bounds how many objects one call may carry.',
  },
  {
    path: 'hooks.extraEnv',
    default: [],
    comment: 'Further environment of the hooks server; it wins over what other values set.',
  },
  {
    path: 'hooks.nodeSelector',
    default: {},
    comment: 'Where the hooks server and the certificate jobs may run.',
  },
  {
    path: 'hooks.tolerations',
    default: [],
    comment: 'Taints that the hooks server and the certificate jobs tolerate.',
  },
  {
    path: 'hooks.affinity',
    default: {},
    comment: 'Affinity of the hooks server and of the certificate jobs.',
  },
  {
    path: 'hooks.topologySpreadConstraints',
    default: hooksSpread,
    comment: 'How pods of the hooks server spread; by default over nodes and zones where that can be had.',
  },
  { path: 'hooks.priorityClassName', default: '', comment: 'Priority class of the hooks server.' },
]

const objectSettings: readonly Setting[] = [
  {
    path: 'definitions.enabled',
    default: true,
    comment:
      'Make and upgrade the definitions (CRDs) of gatehouse.dev. They stay when this turns false, and when the release goes.',
  },
  {
    path: 'commonLabels',
    default: {},
    rules: labelRules,
    comment: 'Labels for every object and pod of the chart.',
  },
  {
    path: 'podLabels',
    default: {},
    rules: labelRules,
    comment: 'Labels for every pod of the chart; they win over commonLabels.',
  },
  {
    path: 'podAnnotations',
    default: {},
    rules: texts,
    comment: 'Annotations for every pod of the chart.',
  },
  {
    path: 'serviceAccountAnnotations',
    default: {},
    rules: texts,
    comment: 'Annotations for every ServiceAccount of the chart.',
  },
  {
    path: 'admission.failurePolicy',
    default: 'Fail',
    oneOf: ['Fail', 'Ignore'],
    comment:
      'What happens to changes of gatehouse.dev objects while no hooks server answers: Fail or Ignore.',
  },
  {
    path: 'controllers.resyncPeriodSeconds',
    default: 300,
    comment: 'Every object is looked at again after this time at the latest.',
  },
  {
    path: 'certificates.mode',
    default: 'self-signed',
    oneOf: ['self-signed', 'cert-manager'],
    comment: 'Who issues the serving certificate: self-signed (a job of this chart) or cert-manager.',
  },
  {
    path: 'certificates.schedule',
    default: '17 3 * * *',
    rules: schedule,
    comment: 'When certificates are looked after; a rotation takes three of these turns.',
  },
  {
    path: 'certificates.lifetime',
    default: '2160h',
    rules: duration,
    comment: 'Validity of a certificate.',
  },
  {
    path: 'certificates.renewBefore',
    default: '720h',
    rules: duration,
    comment: 'Rotation starts when less than this is left; shorter than lifetime.',
  },
  {
    path: 'metacontroller.enabled',
    default: true,
    comment:
      'Run a private Metacontroller with least rights, with its definitions where there are none. False: use one that is shared.',
  },
  {
    path: 'metacontroller.namespace',
    default: 'metacontroller',
    comment:
      'Namespace of a Metacontroller that is shared; the network policy admits only Metacontroller to the hooks.',
  },
  {
    path: 'metacontroller.image',
    default: 'ghcr.io/metacontroller/metacontroller:v4.17.2',
    comment: 'Image of the private Metacontroller; 4.17.2 or newer.',
  },
  {
    path: 'metacontroller.resources',
    default: resources('100m', '256Mi', '1Gi'),
    comment: 'It caches every object of the kinds it watches, cluster-wide.',
  },
  { path: 'metacontroller.nodeSelector', default: {}, comment: 'Where the private Metacontroller may run.' },
  {
    path: 'metacontroller.tolerations',
    default: [],
    comment: 'Taints that the private Metacontroller tolerates.',
  },
  { path: 'metacontroller.affinity', default: {}, comment: 'Affinity of the private Metacontroller.' },
  {
    path: 'metacontroller.priorityClassName',
    default: '',
    comment: 'Priority class of the private Metacontroller.',
  },
]

const platformSettings: readonly Setting[] = [
  {
    path: 'platform.openshift',
    default: false,
    comment: 'Leave user ids to the platform, in generated pods and in those of the chart.',
  },
  {
    path: 'platform.clusterDomain',
    default: 'cluster.local',
    rules: { pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' },
    comment: 'DNS suffix of the cluster.',
  },
  {
    path: 'redis.address',
    default: '',
    rules: { pattern: '^$|^[^\\s"\'\\\\]+:[0-9]{1,5}$' },
    comment: 'Redis (host:port) of every server that keeps sessions and names no store itself.',
  },
  {
    path: 'redis.secretName',
    default: '',
    rules: { pattern: '^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' },
    comment: 'Secret with its password, which must be in the namespace of each server.',
  },
  {
    path: 'redis.secretKey',
    default: 'redis-password',
    rules: { pattern: '^[-._a-zA-Z0-9]+$' },
    comment: 'Key of the password in that Secret.',
  },
  {
    path: 'integrations.gatewayAPI',
    default: false,
    comment:
      'Make HTTPRoutes for spec.exposure.gateway. The definitions of the Gateway API must be installed first.',
  },
  {
    path: 'integrations.onBehalfOf',
    default: false,
    comment: 'Allow the strategy obo of MCPExternalAuthConfig.',
  },
  {
    path: 'stdio.attach',
    default: true,
    comment:
      'Let proxies attach to the containers of stdio servers without a command, and Metacontroller grant them that for one pod each.',
  },
  {
    path: 'serviceMonitor.enabled',
    default: false,
    comment: 'Have a Prometheus operator scrape the hooks server.',
  },
]

/** Rules of a whole section: what is given by half is an error. */
export const sectionRules: Readonly<Record<string, object>> = {
  redis: {
    anyOf: [
      { properties: { secretName: { const: '' } } },
      { properties: { address: { type: 'string', minLength: 1 } } },
    ],
  },
}
