/**
 * The settings of an installation: their defaults, once, for the plain manifests and for the chart.
 *
 * The plain manifests contain the defaults. The chart contains a template expression in their place, and `values.yaml`
 * is written from this same table, comments included: the two cannot drift.
 */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

export interface Setting {
  readonly path: string
  readonly default: Json
  readonly comment: string
  /** The only values there are. */
  readonly oneOf?: readonly string[]
}

const resources = (cpu: string, memory: string, limit: string): Json => ({
  requests: { cpu, memory },
  limits: { memory: limit },
})

/** In the order of `values.yaml`. */
function settings(version: string): readonly Setting[] {
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
    { path: 'images.pullPolicy', default: 'IfNotPresent', comment: 'When the hooks image is pulled.' },
    {
      path: 'images.pullSecrets',
      default: [],
      comment: 'Secrets for pulling the hooks image: a list of {name}.',
    },
    { path: 'hooks.replicas', default: 2, comment: 'Pods of the hooks server.' },
    {
      path: 'hooks.resources',
      default: resources('50m', '128Mi', '512Mi'),
      comment: 'The memory limit bounds how many objects one call may carry.',
    },
    {
      path: 'hooks.extraEnv',
      default: [],
      comment: 'Further environment of the hooks server; docs/install.md lists it.',
    },
    { path: 'hooks.nodeSelector', default: {}, comment: 'Where the hooks server may run.' },
    { path: 'hooks.tolerations', default: [], comment: 'Taints that the hooks server tolerates.' },
    { path: 'hooks.priorityClassName', default: '', comment: 'Priority class of the hooks server.' },
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
      comment: 'When certificates are looked after; a rotation takes three of these turns.',
    },
    { path: 'certificates.lifetime', default: '2160h', comment: 'Validity of a self-signed certificate.' },
    {
      path: 'certificates.renewBefore',
      default: '720h',
      comment: 'Rotation starts when less than this is left.',
    },
    {
      path: 'metacontroller.enabled',
      default: false,
      comment: 'Run a private Metacontroller with least rights.',
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
    {
      path: 'integrations.gatewayAPI',
      default: false,
      comment:
        'Make HTTPRoutes for spec.exposure.gateway. The definitions of the Gateway API must be installed first.',
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
}

/** What is not fixed: `text` belongs into a string, `value` stands alone. All throw for a path that is no setting. */
export interface Values {
  readonly namespace: string
  readonly version: string
  /** Ends the name of a Job, which cannot be changed: differs when the Job would. */
  readonly revision: string
  text(path: string): string
  value(path: string): Json
  /** Items to end a list with. */
  items(path: string): readonly Json[]
  /** An item that is there when the setting is true. */
  when(path: string, item: Json): readonly Json[]
}

/** The defaults themselves. */
export function plainValues(version: string): Values {
  const table = new Map(settings(version).map((one) => [one.path, one.default]))
  const value = (path: string): Json => {
    const found = table.get(path)
    if (found === undefined) throw new Error(`no setting ${path}`)
    return found
  }
  const revision = version.replaceAll(/[^a-z0-9]/gi, '-').toLowerCase()
  return {
    namespace: 'gatehouse-system',
    version,
    revision,
    value,
    text(path) {
      const found = value(path)
      if (typeof found !== 'string' && typeof found !== 'boolean') throw new Error(`${path} is no text`)
      return String(found)
    },
    when: (path, item) => (value(path) === true ? [item] : []),
    items(path) {
      const found = value(path)
      if (!Array.isArray(found)) throw new Error(`${path} is no list`)
      return found
    },
  }
}

/** Marks of template expressions, turned into template text after the YAML is written. */
const inlineMark = (expression: string): string => `\uE000${expression}\uE001`
const blockMark = (path: string): string => `\uE002${path}\uE003`
const whenMark = (path: string, item: Json): string => `\uE006${path} ${JSON.stringify(item)}\uE007`
const itemsMark = (path: string): string => `\uE004${path}\uE005`

/** Template expressions in place of the defaults. */
export function chartValues(version: string): Values {
  const table = new Map(settings(version).map((one) => [one.path, one.default]))
  const known = (path: string): string => {
    if (!table.has(path)) throw new Error(`no setting ${path}`)
    return path
  }
  const text = (path: string): string => inlineMark(`.Values.${known(path)}`)
  return {
    namespace: inlineMark('.Release.Namespace'),
    version: inlineMark('.Chart.AppVersion'),
    revision: inlineMark('list .Chart.AppVersion .Values | toJson | sha256sum | trunc 10'),
    text,
    value: (path) => (typeof table.get(path) === 'string' ? text(path) : blockMark(known(path))),
    items: (path) => [itemsMark(known(path))],
    when: (path, item) => [whenMark(known(path), item)],
  }
}

/** `values.yaml`, with each comment above its setting. */
export function valuesFile(version: string, stringify: (value: Json) => string): string {
  const lines: string[] = ['# Settings of the chart, with their defaults. Written by manifests/generate.']
  let section = ''
  for (const setting of settings(version)) {
    const [head = '', key = ''] = setting.path.split('.')
    if (head !== section) lines.push('', `${head}:`)
    section = head
    lines.push(`  # ${setting.comment}`)
    const body = stringify({ [key]: setting.default }).trimEnd()
    lines.push(...body.split('\n').map((line) => `  ${line}`))
  }
  return `${lines.join('\n')}\n`
}

/** `values.schema.json`: a misspelt or misplaced setting is an error at install, not a surprise. */
export function valuesSchema(version: string): object {
  const sections = Map.groupBy(settings(version), (setting) => setting.path.split('.')[0] ?? '')
  const object = (properties: object) => ({ type: 'object', additionalProperties: false, properties })
  const property = ({ path, ...setting }: Setting) => [path.split('.')[1], schemaOf(setting)]
  const members = [...sections].map(([name, list]) => [name, object(Object.fromEntries(list.map(property)))])
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...object({ ...Object.fromEntries(members), global: { type: 'object' } }),
  }
}

function schemaOf({ default: value, comment: description, oneOf }: Omit<Setting, 'path'>): object {
  if (oneOf) return { enum: oneOf, description }
  if (typeof value === 'number') return { type: 'integer', minimum: 1, description }
  return { type: Array.isArray(value) ? 'array' : typeof value, description }
}
