/**
 * Defines the reasons why a backend is down, for the terminal, the console, `doctor`, `tools list`, `/status` and the
 * cluster report. Each category has a text, a short label for summaries, and a next step.
 *
 * Texts contain no addresses. The backend's own explanation (`detail`) is short and contains no credentials.
 */
import { redactText } from './redact.ts'

export interface Cause {
  /** A key of `causeTable`. */
  readonly category: string
  /** Exit code of the backend's program. */
  readonly exitCode?: number | undefined
  /** Status of the backend's HTTP response. */
  readonly httpStatus?: number | undefined
  /** The backend's own explanation on one line: its response, or the decisive line of its output. */
  readonly detail?: string | undefined
  /** Replaces the category's next step if a more precise step is known, such as a command to run. */
  readonly fix?: string | undefined
}

interface CauseWords {
  readonly text: string
  /** Short label, which completes "3 …" in a summary. */
  readonly label: string
  readonly fix: (backend: string) => string
}

const signInRequired = 'sign_in_required'

/**
 * Returns the next step for a backend that requires the user to sign in. `server` is the name of its virtual server.
 */
export function signInFix(server: string): string {
  return `run gatehouse tools list ${server}, which prints the address where you sign in`
}

export function isSignInRequired({ category }: Pick<Cause, 'category'>): boolean {
  return category === signInRequired
}

const causeTable: Readonly<Record<string, CauseWords>> = {
  authentication_failed: {
    text: 'Authentication failed',
    label: 'rejecting the credential',
    fix: (backend) => `check outgoingAuth for ${backend}: the backend rejects the credential`,
  },
  [signInRequired]: {
    text: 'Sign-in required',
    label: 'waiting for a sign-in',
    fix: (backend) => `sign in to ${backend}: "gatehouse tools list" prints the address`,
  },
  timeout: {
    text: 'Health check timed out',
    label: 'not responding',
    fix: (backend) =>
      `check the load on ${backend}; raise operational.failureHandling.healthCheckTimeout or operational.timeouts if it is slow by design`,
  },
  backend_unavailable: {
    text: 'Backend unavailable',
    label: 'returning errors',
    fix: (backend) => `check the log of ${backend}: it is returning internal errors`,
  },
  connection_failed: {
    text: 'Connection failed',
    label: 'unreachable',
    fix: (backend) =>
      `check that ${backend} is running, that its url is correct, and that network policies and its certificate allow connections from this server`,
  },
  http_proxy_failed: {
    text: 'The HTTP proxy could not connect',
    label: 'behind a failing HTTP proxy',
    fix: (backend) =>
      `check HTTPS_PROXY, HTTP_PROXY and NO_PROXY on this server: the log contains the proxy used for ${backend} and the reason`,
  },
  session_lost: {
    text: 'Sessions are lost',
    label: 'losing sessions',
    fix: (backend) =>
      `${backend} loses its sessions: run one replica, enable session affinity, or configure shared session storage`,
  },
  health_check_failed: {
    text: 'Health check failed',
    label: 'returning invalid responses',
    fix: (backend) =>
      `check that the url of ${backend} points to an MCP server: the responses are not valid MCP`,
  },
  host_rejected: {
    text: 'The backend rejected the host name',
    label: 'rejecting the host name',
    fix: (backend) =>
      `in the settings of ${backend}, allow the host name from its url (allowed hosts, DNS rebinding protection)`,
  },
  wrong_path: {
    text: 'No MCP server at the URL path',
    label: 'not found at the path',
    fix: (backend) => `check the path in the url of ${backend}: most servers use /mcp, older ones /sse`,
  },
  web_page: {
    text: 'The backend returns a web page',
    label: 'returning a web page',
    fix: (backend) =>
      `correct the url of ${backend}: it points to a web page, not an MCP server; the login page of a proxy in front of the server can also cause this`,
  },
  request_rejected: {
    text: "The backend rejects this server's requests",
    label: 'rejecting requests',
    fix: (backend) =>
      `correct the problem that the error from ${backend} describes, in the settings of the backend or of this server`,
  },
  credential_unavailable: {
    text: 'No credential for the backend',
    label: 'without a credential',
    fix: (backend) =>
      `check outgoingAuth for ${backend} and its authorization server, which did not issue a token`,
  },
  slow: {
    text: 'Health check is slow',
    label: 'slow',
    fix: (backend) => `check the load on ${backend}: health checks take longer than 5 seconds`,
  },
  configuration_invalid: {
    text: 'The settings are invalid',
    label: 'excluded',
    fix: (backend) =>
      `correct the settings of ${backend}; the file and the files that it references are reloaded automatically`,
  },
  // Causes for servers that run on this machine.
  program_not_found: {
    text: 'The command was not found',
    label: 'not found',
    fix: (backend) => `install it, or correct the command of ${backend}`,
  },
  program_not_started: {
    text: 'The program could not be started',
    label: 'not started',
    fix: (backend) => `correct the command, arguments or variables of ${backend}`,
  },
  port_in_use: {
    text: 'The port is not free',
    label: 'without a free port',
    fix: (backend) => `stop the program that is using the port of ${backend}`,
  },
  program_exited: {
    text: 'The program exited',
    label: 'exited',
    fix: (backend) =>
      `correct the problem that its output describes: run gatehouse logs ${backend} to see the full output`,
  },
  program_refused: {
    text: 'The server rejects new sessions',
    label: 'rejecting sessions',
    fix: (backend) =>
      `correct the problem that the error from ${backend} describes: run gatehouse logs ${backend} to see its output`,
  },
  program_starting: {
    text: 'The server is starting',
    label: 'starting',
    fix: (backend) => `wait until ${backend} responds: run gatehouse logs ${backend} -f to follow its output`,
  },
  not_runnable: {
    text: 'The server cannot run on this machine',
    label: 'not runnable here',
    fix: (backend) => `correct the manifest of ${backend}`,
  },
  package_installing: {
    text: 'The package is being installed',
    label: 'installing',
    fix: (backend) => `wait until the package for ${backend} is installed`,
  },
  package_failed: {
    text: 'The package could not be installed',
    label: 'not installable',
    fix: (backend) => `correct the name and version of ${backend}, or the registry settings`,
  },
  package_cache_broken: {
    text: 'The package cache is broken',
    label: 'broken in the package cache',
    fix: (backend) => `remove the cached package for ${backend}; it is installed again automatically`,
  },
}

const unknownCause: CauseWords = {
  text: 'Health check failed',
  label: 'down',
  fix: (backend) => `check the log of ${backend}`,
}

function wordsOf({ category }: Cause): CauseWords {
  return Object.hasOwn(causeTable, category) ? (causeTable[category] ?? unknownCause) : unknownCause
}

/** Returns the text for a category, with the exit code or HTTP status: `The program exited with code 3`. */
export function causeTitle(cause: Cause): string {
  const { text } = wordsOf(cause)
  if (cause.exitCode !== undefined) return `${text} with code ${cause.exitCode}`
  return cause.httpStatus === undefined ? text : `${text} (HTTP ${cause.httpStatus})`
}

/** Returns the title with the backend's own explanation. */
export function causeText(cause: Cause): string {
  return withDetail(causeTitle(cause), cause.detail)
}

/** Returns the next step. */
export function causeFix(cause: Cause, backend: string): string {
  return cause.fix ?? wordsOf(cause).fix(backend)
}

/** Appends the backend's own explanation, if there is one. */
export function withDetail(text: string, detail: string | undefined): string {
  return detail === undefined ? text : `${text}: ${detail}`
}

/** Matches uninformative lines: blank lines, stack frames, source excerpts, and package manager notices. */
const noise =
  /^\s*$|^\s+at\s|^\s*[\^~]+\s*$|^\s+File "|^npm (?:notice|warn)\b|^npm error (?:A complete log|code |errno |syscall |\d{3}\s*$)|^Node\.js v\d|^\s*[{}[\]()]+,?\s*$|^node:internal|^\s+throw\b|^Traceback/
const namedError = /^(?:Uncaught )?[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*\S/
const errorWord =
  /error|fatal|panic|cannot|can't|could not|not found|denied|missing|required|invalid|unknown/i
const maxDetail = 300

/**
 * Returns the line of a program's output that most likely explains its exit, without credentials. Returns undefined if
 * there is no such line.
 */
export function decisiveLine(output: readonly string[]): string | undefined {
  const lines = tellingLines(output)
  const line = lines.findLast((text) => namedError.test(text)) ?? lines.find((text) => errorWord.test(text))
  const chosen = (line ?? lines.at(-1))?.trim()
  if (chosen === undefined) return undefined
  const safe = redactText(chosen)
  return safe.length > maxDetail ? `${safe.slice(0, maxDetail - 1)}…` : safe
}

/** Removes uninformative lines, such as stack frames. */
export function tellingLines(output: readonly string[]): readonly string[] {
  return output.filter((line) => !noise.test(line))
}

/** A backend's state, for a summary. */
export interface ObservedBackend {
  readonly name: string
  /** `healthy`, `degraded`, `unhealthy`, `unauthenticated` or `unknown`. */
  readonly health: string
  /** Cause of the failure; undefined for an unknown cause. */
  readonly cause?: Cause | undefined
}

interface BackendFacts {
  readonly name: string
  readonly health: { readonly status: string; readonly lastError: Cause | undefined }
  /** Violations of an excluded backend's settings. */
  readonly excluded: readonly string[] | undefined
}

/** Returns a backend's state for a summary. An excluded backend is down because of its settings. */
export function observedBackend({ name, health, excluded }: BackendFacts): ObservedBackend {
  const cause = excluded
    ? { category: 'configuration_invalid', detail: excluded.join('; ') }
    : health.lastError
  return { name, health: health.status, cause }
}

/** Backends that are down for the same cause. */
export interface CauseGroup {
  readonly category: string
  /** Completes "3 …". */
  readonly label: string
  /** Text and next step of the group's first backend. */
  readonly text: string
  readonly fix: string
  readonly backends: readonly string[]
}

export interface BackendSummary {
  /** `8 of 10 backends are down: 3 unreachable, 2 not found, 3 installing`; undefined when no backend is down. */
  readonly text: string | undefined
  /** Groups, from largest to smallest. */
  readonly groups: readonly CauseGroup[]
}

/** True when a backend serves no requests. An unchecked backend is down only if a cause is known. */
function isDown({ health, cause }: ObservedBackend): boolean {
  return health === 'unknown' ? cause !== undefined : health !== 'healthy' && health !== 'degraded'
}

/** Groups unavailable backends by cause. */
export function summarizeBackends(backends: readonly ObservedBackend[]): BackendSummary {
  const down = backends.filter(isDown)
  if (down.length === 0) return { text: undefined, groups: [] }
  // Groups by label and next step, because backends with the same label can need different next steps.
  const byStep = Map.groupBy(down, ({ cause = unknown }) => `${wordsOf(cause).label}\n${cause.fix ?? ''}`)
  const groups = [...byStep.values()].map(groupOf).sort((a, b) => b.backends.length - a.backends.length)
  const counts = [...Map.groupBy(groups, ({ label }) => label)]
    .map(([label, same]) => ({ label, count: same.flatMap(({ backends: names }) => names).length }))
    .sort((a, b) => b.count - a.count)
    .map(({ label, count }) => `${count} ${label}`)
    .join(', ')
  const subject =
    backends.length === 1
      ? 'the backend is'
      : `${down.length} of ${backends.length} backends ${down.length === 1 ? 'is' : 'are'}`
  return { text: `${subject} down: ${counts}`, groups }
}

const unknown: Cause = { category: 'unknown' }

function groupOf(members: readonly ObservedBackend[]): CauseGroup {
  const backends = members.map(({ name }) => name)
  const { cause = unknown } = members[0] ?? {}
  const { label } = wordsOf(cause)
  return {
    category: cause.category,
    label,
    text: causeText(cause),
    fix: causeFix(cause, backends[0] ?? ''),
    backends,
  }
}
