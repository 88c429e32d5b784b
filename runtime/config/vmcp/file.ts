/**
 * The configuration file of a virtual server: reads, validates, defaults and freezes it, and watches it for changes.
 *
 * Secrets are not in the file; the variables that it names are read from the environment by whoever needs them.
 * Source: docs/reference/specification/virtual-server.md#config, spec.config; `schemas/runtime/vmcp.json`.
 */
import { hash } from 'node:crypto'
import { readFileSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import {
  consoleSecretVariable,
  type ExcludedBackend,
  switchViolation,
  validateRuntime,
  type VmcpFile,
  withoutBroken,
} from '../../../schemas/index.ts'
import { invalidConfig, parseConfig, readConfigText, readDocument } from '../common/config-file.ts'
import { variables } from '../proxy/env.ts'

/** The file with all defaults filled in; deeply frozen. */
export type VmcpConfig = VmcpFile

export interface ReadVmcpConfig {
  readonly config: VmcpConfig
  /** Backends of the file that cannot be served as it stands; the configuration is without them. */
  readonly excluded: readonly ExcludedBackend[]
}

export interface LoadedVmcpConfig extends ReadVmcpConfig {
  /** SHA-256 of the file's text, hex: tells the hooks which configuration a report is about. */
  readonly checksum: string
}

/**
 * Reads and checks a file; problems of single backends exclude these backends. Throws INVALID_CONFIG naming the file and
 * every problem, when one of them is about something else.
 */
export function loadVmcpConfig(path: string): LoadedVmcpConfig {
  const text = readConfigText(path)
  return { ...readVmcpConfig(text, path), checksum: hash('sha256', text, 'hex') }
}

/** Checks a text. Throws INVALID_CONFIG naming every error, and the source where it is given. */
export function parseVmcpConfig(text: string, source?: string): VmcpConfig {
  return deepFreeze(parseConfig('vmcp', text, source))
}

/** Checks a text as `loadVmcpConfig` does. */
export function readVmcpConfig(text: string, source?: string): ReadVmcpConfig {
  const document = readDocument(text, source)
  const { config, violations } = validateRuntime('vmcp', document)
  if (config) return { config: deepFreeze(config), excluded: [] }
  const remaining = withoutBroken(document, violations)
  if (!remaining) throw invalidConfig(violations, source)
  const rest = validateRuntime('vmcp', remaining.document)
  if (!rest.config) throw invalidConfig([...violations, ...rest.violations], source)
  return { config: deepFreeze(rest.config), excluded: remaining.excluded }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

/** How often the file is looked at besides the system's own notices, which some mounts do not give. */
const pollMs = 5_000
const settleMs = 50

/**
 * Calls `onChange` after the content of the file has changed, whether it was written in place, renamed over, or is a
 * mounted ConfigMap whose link was moved. A file that is missing for a moment changes nothing. The returned function stops it.
 */
export function watchFile(path: string, onChange: () => void): () => void {
  let last = readIfThere(path)
  let timer: NodeJS.Timeout | undefined
  function look(): void {
    const now = readIfThere(path)
    if (now === undefined || now === last) return
    last = now
    onChange()
  }
  function soon(): void {
    clearTimeout(timer)
    timer = setTimeout(look, settleMs)
  }
  const watcher = watch(dirname(path), (_event, name) => {
    if (name === null || name === basename(path) || name.startsWith('../..')) soon()
  })
  watcher.on('error', () => watcher.close())
  watcher.unref()
  const poll = setInterval(look, pollMs)
  poll.unref()
  return () => {
    watcher.close()
    clearInterval(poll)
    clearTimeout(timer)
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Variables that a virtual server reads, by purpose. */
export const vmcpEnvironment = {
  redisPassword: 'GATEHOUSE_SESSION_REDIS_PASSWORD',
  /** Followed by the backend's name: JSON with headers for it. */
  headerForward: 'GATEHOUSE_HEADER_FORWARD_',
  /** Followed by an identifier that such a JSON names: the value of one header. */
  headerSecret: 'GATEHOUSE_SECRET_',
  /** Key material shared by replicas, for state that clients carry; at least 32 bytes of base64. */
  stateKey: 'VMCP_SESSION_HMAC_SECRET',
  enableObo: 'GATEHOUSE_ENABLE_OBO',
  /** Key for the embedding service of tool search, with provider compat. */
  embeddingApiKey: 'GATEHOUSE_EMBEDDING_API_KEY',
  debug: 'GATEHOUSE_DEBUG',
  /** Life of a session without use, as a duration. */
  sessionTtl: 'GATEHOUSE_VMCP_SESSION_TTL',
  /** How many sessions one process holds. */
  maxSessions: 'GATEHOUSE_VMCP_MAX_SESSIONS',
  /** Switched on: spans show the arguments of tool calls, redacted and cut. */
  telemetryToolArguments: 'GATEHOUSE_TELEMETRY_TOOL_ARGUMENTS',
  /** Set by `gatehouse dev`: the console without a login, and the token that it must be shown. */
  consoleToken: 'GATEHOUSE_CONSOLE_TOKEN',
  consolePort: 'GATEHOUSE_CONSOLE_PORT',
  /** Set by `gatehouse dev`: JSON list of the files and folders with its manifests, which the console may write locks in. */
  consoleManifests: 'GATEHOUSE_CONSOLE_MANIFESTS',
  consoleClientSecret: consoleSecretVariable,
  /** In a pod: where and under which name backend health is reported. */
  namespace: 'VMCP_NAMESPACE',
  reportConfigMap: 'GATEHOUSE_REPORT_CONFIGMAP',
  podName: 'GATEHOUSE_POD_NAME',
} as const

/** What is wrong with the variables that switch something on or off. */
export function vmcpSwitchViolations(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const { enableObo, debug, telemetryToolArguments } = vmcpEnvironment
  const names = [enableObo, debug, telemetryToolArguments, variables.proxyResolvesNames.name]
  return names.flatMap((name) => switchViolation(env, name) ?? [])
}

/** The environment of this process; the only way to it from the virtual server. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env
}
