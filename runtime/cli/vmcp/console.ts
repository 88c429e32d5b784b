/** The web console of a virtual server: its settings and its data sources. */
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import { type Environment, type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import type {
  AnonymousOptions,
  CallRecorder,
  ConsoleOptions,
  OidcOptions,
  RunningConsole,
} from '../../console/index.ts'
import { anonymousCaller } from '../../incoming/index.ts'
import { type Fetch, type Log, makeFetch } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import { makeRecordStream, type RecordStream } from '../../store/index.ts'
import { sessionRedisSettings, type VmcpServer } from '../../vmcp/index.ts'
import { version } from '../../toolkit/terminal/self.ts'

export interface ConsoleParts {
  readonly env: Environment
  readonly config: VmcpConfig
  readonly events: Events
  readonly log: Log
  /** Certificate of the virtual server; undefined when the console serves plain HTTP. */
  readonly certificate: ServedCertificate | undefined
}

/** A console that opens after its server has started. */
export interface PreparedConsole {
  /** Records calls from the start of the server. */
  readonly recorder: CallRecorder
  open(server: VmcpServer): Promise<RunningConsole>
}

/** Returns the console that the configuration or `gatehouse dev` enables, or undefined. */
export async function prepareConsole(parts: ConsoleParts): Promise<PreparedConsole | undefined> {
  const { events, log, certificate } = parts
  const found = settingsOf(parts)
  if (!found) return undefined
  const { payloads, access, ...settings } = found
  // Loads the console on demand, because most servers have no console.
  const { CallRecorder, startConsole } = await import('../../console/index.ts')
  const recorder = new CallRecorder({ events, payloads })
  return {
    recorder,
    open: async ({ view }) => {
      const { makeApprover } = await import('../../tools/lock/index.ts')
      return startConsole({
        ...settings,
        access: access.type === 'oidc' ? { ...access, roles: () => view.console() ?? {} } : access,
        certificate,
        view,
        approver: await makeApprover({ env: parts.env, toolLocks: () => view.toolLocks() }),
        explain: async (question, caller) =>
          (await import('../../tools/explain/index.ts')).explain(await view.snapshot(caller), question),
        recorder,
        shared: sharedCalls(parts),
        events,
        version,
        log,
      })
    },
  }
}

/** Replicas that share sessions also share the calls shown in the console. */
function sharedCalls({ env, config }: ConsoleParts): RecordStream | undefined {
  const redis = sessionRedisSettings(config, env)
  return redis && makeRecordStream(redis, `${redis.keyPrefix}console-calls`)
}

interface Settings extends Pick<ConsoleOptions, 'host' | 'port' | 'basePath' | 'publicUrl'> {
  /** Omits roles, which the console reads from the current settings. */
  readonly access: AnonymousOptions | Omit<OidcOptions, 'roles'>
  readonly payloads: 'none' | 'failures' | 'all'
}

/** Returns the fetch function for requests to the issuer of console logins. */
export function consoleFetch(): Fetch {
  return makeFetch({ guard: 'operator' })
}

/** Settings from `gatehouse dev` take precedence, because `gatehouse dev` serves only this machine. */
function settingsOf({ env, config }: ConsoleParts): Settings | undefined {
  const token = env[vmcpEnvironment.consoleToken]
  if (token) {
    const port = Number(env[vmcpEnvironment.consolePort] ?? 0)
    return {
      host: '127.0.0.1',
      port,
      payloads: 'all',
      access: { type: 'anonymous', token, caller: anonymousCaller() },
    }
  }
  if (!config.console?.enabled || !config.console.auth) return undefined
  const { host = '127.0.0.1', port, publicUrl, basePath, auth, payloads } = config.console
  const { issuer, clientId, scopes } = auth
  return {
    host,
    port,
    publicUrl,
    basePath,
    payloads,
    access: {
      type: 'oidc',
      issuer,
      clientId,
      clientSecret: () => env[vmcpEnvironment.consoleClientSecret] || undefined,
      scopes,
      fetch: consoleFetch(),
    },
  }
}
