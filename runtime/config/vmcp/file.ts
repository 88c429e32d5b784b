/**
 * Reads, validates, freezes and watches the configuration file of a virtual server, and applies defaults.
 *
 * The file contains no secrets. Each component reads the variables that the file refers to.
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

/** Deeply frozen content of the file, with all defaults. */
export type VmcpConfig = VmcpFile

export interface ReadVmcpConfig {
  readonly config: VmcpConfig
  /** Backends in the file whose configuration is invalid. `config` does not contain these backends. */
  readonly excluded: readonly ExcludedBackend[]
}

export interface LoadedVmcpConfig extends ReadVmcpConfig {
  /** SHA-256 of the file's text, in hex. Hooks use this digest to match reports to configurations. */
  readonly checksum: string
}

/**
 * Reads and checks a file. A problem with a single backend excludes only that backend. Throws INVALID_CONFIG with the
 * path and all problems if any problem concerns another part of the file.
 */
export function loadVmcpConfig(path: string): LoadedVmcpConfig {
  const text = readConfigText(path)
  return { ...readVmcpConfig(text, path), checksum: hash('sha256', text, 'hex') }
}

/** Checks configuration text. Throws an INVALID_CONFIG error that lists all errors, and the source if given. */
export function parseVmcpConfig(text: string, source?: string): VmcpConfig {
  return deepFreeze(parseConfig('vmcp', text, source))
}

/** Checks text like `loadVmcpConfig`. */
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

/** Poll interval, in addition to file system notifications, which some mounts do not send. */
const pollMs = 5_000
const settleMs = 50

/**
 * Calls `onChange` after the file's content has changed: written in place, replaced by a rename, or swapped through the
 * symbolic link of a mounted ConfigMap. Ignores a file that is temporarily missing. Returns a function that stops
 * watching.
 */
export function watchFile(path: string, onChange: () => void): () => void {
  let last = readIfExists(path)
  let timer: NodeJS.Timeout | undefined
  function checkContent(): void {
    const now = readIfExists(path)
    if (now === undefined || now === last) return
    last = now
    onChange()
  }
  function scheduleCheck(): void {
    clearTimeout(timer)
    timer = setTimeout(checkContent, settleMs)
  }
  const watcher = watch(dirname(path), (_event, name) => {
    if (name === null || name === basename(path) || name.startsWith('../..')) scheduleCheck()
  })
  watcher.on('error', () => watcher.close())
  watcher.unref()
  const poll = setInterval(checkContent, pollMs)
  poll.unref()
  return () => {
    watcher.close()
    clearInterval(poll)
    clearTimeout(timer)
  }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The variables that a virtual server reads, grouped by purpose. */
export const vmcpEnvironment = {
  redisPassword: 'GATEHOUSE_SESSION_REDIS_PASSWORD',
  /** Prefix of variables that contain a backend's headers as JSON. The rest of the name is the backend's name. */
  headerForward: 'GATEHOUSE_HEADER_FORWARD_',
  /** Prefix of variables that contain the value of one header. The rest of the name is an identifier from the JSON. */
  headerSecret: 'GATEHOUSE_SECRET_',
  /** Key material that replicas share, for state that clients store; at least 32 bytes, encoded in base64. */
  stateKey: 'VMCP_SESSION_HMAC_SECRET',
  /** Previous or upcoming values of `stateKey`, separated by commas. These keys open values but never seal them. */
  previousStateKeys: 'VMCP_SESSION_HMAC_SECRET_PREVIOUS',
  enableObo: 'GATEHOUSE_ENABLE_OBO',
  /** API key for tool search's embedding service, when the provider is `compat`. */
  embeddingApiKey: 'GATEHOUSE_EMBEDDING_API_KEY',
  debug: 'GATEHOUSE_DEBUG',
  /** Idle timeout of a session, as a duration. */
  sessionTtl: 'GATEHOUSE_VMCP_SESSION_TTL',
  /** Maximum number of sessions in one process. */
  maxSessions: 'GATEHOUSE_VMCP_MAX_SESSIONS',
  /** True to record the arguments of tool calls on spans, redacted and truncated. */
  telemetryToolArguments: 'GATEHOUSE_TELEMETRY_TOOL_ARGUMENTS',
  /**
   * `gatehouse dev` sets this variable to enable the console without a login. Requests must contain the token in the
   * variable.
   */
  consoleToken: 'GATEHOUSE_CONSOLE_TOKEN',
  consolePort: 'GATEHOUSE_CONSOLE_PORT',
  /**
   * `gatehouse dev` sets this variable to a JSON list of the files and folders with its manifests. The console is
   * allowed to write locks to these files.
   */
  consoleManifests: 'GATEHOUSE_CONSOLE_MANIFESTS',
  /**
   * `gatehouse dev` sets this variable to the path of a file with the causes of failures in its programs, keyed by
   * backend.
   */
  localCauses: 'GATEHOUSE_LOCAL_CAUSES',
  /**
   * `gatehouse dev` sets this variable to let the user sign in to backends that require a login. Requests that start a
   * login must contain the value.
   */
  signInKey: 'GATEHOUSE_SIGN_IN_KEY',
  /** Set by `gatehouse up --login`: the origin of its login pages, which the virtual server serves below `/login/`. */
  loginPages: 'GATEHOUSE_LOGIN_PAGES',
  consoleClientSecret: consoleSecretVariable,
  /** Namespace and name of the ConfigMap for health reports, in a pod. */
  namespace: 'VMCP_NAMESPACE',
  reportConfigMap: 'GATEHOUSE_REPORT_CONFIGMAP',
  podName: 'GATEHOUSE_POD_NAME',
} as const

/**
 * Returns the keys for state that clients and Redis store: first the key that seals, then the keys that only open.
 * Returns an empty list if no key is configured. White space around a key is ignored, because Secrets that are created
 * from files often end with a line break.
 */
export function stateKeys(valueOf: (variable: string) => string | undefined): readonly string[] {
  const current = valueOf(vmcpEnvironment.stateKey)?.trim()
  return current ? [current, ...previousKeys(valueOf(vmcpEnvironment.previousStateKeys))] : []
}

function previousKeys(value = ''): readonly string[] {
  return value
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
}

/** Returns the errors in variables. */
export function vmcpVariableViolations(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const { enableObo, debug, telemetryToolArguments } = vmcpEnvironment
  const names = [enableObo, debug, telemetryToolArguments, variables.proxyResolvesNames.name]
  const { stateKey, previousStateKeys } = vmcpEnvironment
  const hasOnlyPrevious = !env[stateKey]?.trim() && previousKeys(env[previousStateKeys]).length > 0
  return [
    ...names.flatMap((name) => switchViolation(env, name) ?? []),
    ...(hasOnlyPrevious ? [`${previousStateKeys}: requires ${stateKey}`] : []),
  ]
}

/** Returns the environment of this process. The virtual server reads the environment only through this function. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env
}
