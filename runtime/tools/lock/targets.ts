/** Finds the backends to lock, which come from manifests and flags, and the existing locks in the manifests. */
import {
  formatViolations,
  fieldsOf,
  type ToolLockSpec,
  type Violation,
  withDefaults,
  invalidConfig,
  pinScheme,
  runtimeToolLock,
  type RuntimeToolLock,
} from '../../../schemas/index.ts'
import { parseVmcpConfig, type VmcpConfig } from '../../config/index.ts'
import { type Manifest, readManifests } from '../../toolkit/manifests/read.ts'
import { runningServerAt } from '../../toolkit/targets/running.ts'
import { lockFolders } from './pages.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OfflineService, validateResource } from '../../../hooks/index.ts'
import { restBackend, restServicesIn } from './openapi-server.ts'

export type BackendKind = ToolLockSpec['backendRef']['kind']

export interface LockTarget {
  readonly kind: BackendKind
  readonly name: string
  readonly url: string
  readonly transport: 'sse' | 'streamable-http' | 'openapi'
  /** Present for transport openapi. */
  readonly rest?: OfflineService
}

/** A backend whose definitions could not be listed. */
export interface UnlistedBackend {
  readonly backend: string
  readonly message: string
}

export interface LockInputs {
  readonly targets: readonly LockTarget[]
  /** Names of backends that have no address reachable from this machine. */
  readonly unreachable: readonly string[]
  /** REST services whose documents are not among the manifests. */
  readonly undocumented: readonly UnlistedBackend[]
  /** The locks in the manifests. */
  readonly locks: readonly ToolLockSpec[]
  /** Folders of the files that contain locks. */
  readonly folders: readonly string[]
}

const memberKinds = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'] as const

/** `urls` maps backend names to addresses. Throws INVALID_CONFIG for an invalid lock or REST service. */
export function targetsOf(
  manifests: readonly Manifest[],
  urls: ReadonlyMap<string, string>,
  violationsOf: (doc: unknown) => readonly Violation[],
): LockInputs {
  const targets: LockTarget[] = []
  const unreachable: string[] = []
  const undocumented: UnlistedBackend[] = []
  const locks = locksIn(manifests, violationsOf)
  for (const { doc } of manifests) {
    const { kind } = doc
    const name = fieldsOf(doc['metadata'])['name']
    const member = memberKinds.find((memberKind) => memberKind === kind)
    if (!member || typeof name !== 'string') continue
    const target = targetOf(member, name, fieldsOf(doc['spec']), urls.get(name))
    if (target) targets.push(target)
    else unreachable.push(name)
  }
  for (const [name, rest] of restServicesIn(manifests, violationsOf)) {
    if (urls.has(name))
      throw invalidConfig(
        `--url ${name}: has no effect, because an MCPOpenAPIServer is locked from its document`,
      )
    if ('problem' in rest.document) undocumented.push({ backend: name, message: rest.document.problem })
    else targets.push({ kind: 'MCPOpenAPIServer', name, url: rest.baseUrl, transport: 'openapi', rest })
  }
  const named = new Set([...targets.map(({ name }) => name), ...unreachable])
  for (const [name, url] of urls)
    if (!named.has(name))
      targets.push({ kind: kindOf(name, locks, url), name, url, transport: 'streamable-http' })
  const names = targets.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined)
    throw invalidConfig(`several backends are named ${repeated}: lock each namespace with a separate command`)
  return { targets, unreachable, undocumented, locks, folders: lockFolders(manifests) }
}

/** Returns the locks in the manifests. Throws INVALID_CONFIG for an invalid lock. */
export function locksIn(
  manifests: readonly Manifest[],
  violationsOf: (doc: unknown) => readonly Violation[],
): readonly ToolLockSpec[] {
  return manifests.flatMap(({ doc, file, line }) => {
    if (doc.kind !== 'MCPToolLock') return []
    const violations = violationsOf(doc)
    if (violations.length > 0) throw invalidConfig(`${file}:${line}: ${formatViolations(violations)}`)
    return [withDefaults(doc as { readonly kind: 'MCPToolLock' }).spec]
  })
}

/**
 * For a backend that has only an address, returns the kind recorded in its lock, or the kind of the running server at
 * this address. Throws INVALID_CONFIG when locks for this name contain different kinds.
 */
function kindOf(name: string, locks: readonly ToolLockSpec[], url: string): BackendKind {
  const kinds = new Set(
    locks.flatMap(({ backendRef }) => (backendRef.name === name ? [backendRef.kind] : [])),
  )
  if (kinds.size > 1)
    throw invalidConfig(
      `--url ${name}: locks exist for backends with this name and the kinds ${[...kinds].sort().join(', ')}; also pass the manifest of the intended backend`,
    )
  const running = runningServerAt(new URL(url))?.kind
  const [kind = memberKinds.find((memberKind) => memberKind === running) ?? 'Backend'] = kinds
  return kind
}

function targetOf(
  kind: BackendKind,
  name: string,
  { remoteUrl, transport }: Readonly<Record<string, unknown>>,
  urlOverride: string | undefined,
): LockTarget | undefined {
  const url = urlOverride ?? (typeof remoteUrl === 'string' ? remoteUrl : undefined)
  if (url === undefined) return undefined
  const isSse = urlOverride === undefined && transport === 'sse'
  return { kind, name, url, transport: isSse ? 'sse' : 'streamable-http' }
}

/** Prefix of the variables that contain the Authorization headers for backends. */
const authorizationVariable = 'GATEHOUSE_LOCK_AUTHORIZATION'

/** A configuration used only to list the targets, and the variables that it refers to. */
interface Survey {
  readonly config: VmcpConfig
  readonly variables: Readonly<Record<string, string>>
}

/**
 * `tokenFor` returns the bearer token for a URL, or undefined. `folder` is for the OpenAPI documents of REST services.
 * Throws INVALID_CONFIG.
 */
export function surveyConfig(
  targets: readonly LockTarget[],
  tokenFor: (url: string) => string | undefined,
  folder: string,
): Survey {
  const rest = targets.flatMap(({ name, rest: service }, index) =>
    service ? [{ name, ...restBackend(service, join(folder, `${index}`), index) }] : [],
  )
  const tokens = targets.flatMap(({ name, url, rest: service }, index) => {
    const token = service ? undefined : tokenFor(url)
    return token === undefined ? [] : [{ name, token, variable: `${authorizationVariable}_${index}` }]
  })
  const config = parseVmcpConfig(
    JSON.stringify({
      name: 'lock',
      groupRef: 'lock',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: {
        source: 'inline',
        backends: Object.fromEntries(
          tokens.map(({ name, variable }) => {
            const headerInjection = { headerName: 'Authorization', headerValueEnv: variable }
            return [name, { type: 'header_injection', headerInjection }]
          }),
        ),
      },
      aggregation: {},
      backends: targets.map(({ name, url, transport }) => ({
        ...{ name, url, transport },
        ...rest.find((service) => service.name === name)?.backend,
      })),
      extensions: { skills: { enabled: true } },
      pinning: { onChanged: 'observe', onNew: 'observe', onRemoved: 'observe' },
    }),
  )
  return {
    config,
    variables: {
      ...Object.fromEntries(tokens.map(({ variable, token }) => [variable, `Bearer ${token}`])),
      ...Object.fromEntries(rest.map(({ variable, headers }) => [variable, headers])),
    },
  }
}

/** Throws INVALID_CONFIG when the file cannot be read or does not contain a lock for this name. */
export function proxyLocks(path: string, name: string): readonly RuntimeToolLock[] {
  const manifests = readManifests([path], () => readFileSync(0, 'utf8'))
  const locks = locksIn(manifests, (doc) => validateResource(doc).violations)
  const own = locks.filter(({ backendRef }) => backendRef.name === name)
  if (own.length > 0) return own.map((spec) => ({ scheme: pinScheme, ...runtimeToolLock(spec, name) }))
  const otherNames = [...new Set(locks.map(({ backendRef }) => backendRef.name))].sort().slice(0, 10)
  const found =
    otherNames.length > 0 ? `the file has locks for ${otherNames.join(', ')}` : 'the file has no MCPToolLock'
  throw invalidConfig(`--tool-lock: ${path} has no lock for ${name}: ${found}`)
}
