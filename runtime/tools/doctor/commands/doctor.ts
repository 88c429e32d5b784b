/**
 * Runs `gatehouse doctor`: selects the checks for the given options, runs them and prints the report.
 */
import { invalidConfig } from '../../../../schemas/index.ts'
import type { Command } from 'commander'
import { environment, parseTarget } from '../../../config/index.ts'
import { proxyEnvironment } from '../../../net/index.ts'
import { givenOptions, refuseIdle } from '../../../toolkit/terminal/options.ts'
import { exitCode, painter, print, printJson } from '../../../toolkit/terminal/output.ts'
import { readBounded, readToken } from '../../../toolkit/terminal/token-file.ts'
import { clientTargets } from './client.ts'
import { clusterTarget } from './cluster.ts'
import { checkRedirectUri, idleWithLogin, type LoginFlags, loginOptions } from './login.ts'
import { manifestTargets } from './manifests.ts'
import { type CommonOptions, remoteTarget } from './remote.ts'
import { type Examined, type FailOn, isFailed, reportLines, reportObject } from './report.ts'
import { runningHint, runningServer } from '../../../toolkit/targets/running.ts'
import { skippedServer } from '../../../toolkit/targets/skipped.ts'
import { isUrl } from '../../../toolkit/targets/proxy-flags.ts'
import { urlOfTarget } from '../../../toolkit/targets/resolve.ts'
import type { DirectoryName } from '../directory/model.ts'
import { examineGateway, failedProgram } from '../gateway/examine.ts'
import { examineRedis } from '../store/examine.ts'
import { profileNamed, profiles } from '../profiles/index.ts'

export interface DoctorFlags extends LoginFlags {
  readonly filename?: string[]
  readonly gateway?: string
  readonly client?: string
  /** Name of the only entry to check in the client's file; used with `client`. */
  readonly entry?: string
  readonly redis?: string
  /** Context of the cluster; true for the current context. */
  readonly cluster?: string | true
  readonly passwordFile?: string
  readonly origin?: string
  readonly watch: number
  readonly directory?: readonly DirectoryName[]
  readonly provider?: string
  readonly caFile?: string
  readonly timeout: number
  readonly failOn: FailOn
  readonly output: 'text' | 'json'
}

export async function doctor(url: string | undefined, flags: DoctorFlags, command: Command): Promise<number> {
  refuseOthers(targetOf(url, flags), flags, command)
  const examined: Examined[] = []
  const paint = painter({ colour: process.stdout.isTTY && process.stdout.hasColors() })
  for await (const result of examine(url, flags)) {
    // Print each result immediately, because checking an unresponsive host takes a long time.
    if (flags.output === 'text')
      print(`${examined.length > 0 ? '\n' : ''}${reportLines(result, paint).join('\n')}`)
    examined.push(result)
  }
  if (flags.output === 'json') printJson(reportObject(examined, flags.failOn))
  return isFailed(examined, flags.failOn) ? exitCode.failed : exitCode.ok
}

async function* examine(url: string | undefined, flags: DoctorFlags): AsyncGenerator<Examined> {
  const { filename, gateway, client, redis, cluster } = flags
  const common = commonOptions(flags)
  if (url !== undefined) yield* namedTargets(url, { ...common, ...loginOf(flags) })
  if (filename !== undefined) yield* manifestTargets(filename, common)
  if (client !== undefined) yield* clientTargets(client, flags.entry, common)
  if (gateway !== undefined) yield* gatewayTargets(gateway, common)
  if (redis !== undefined) yield await redisTarget(redis, flags)
  if (cluster !== undefined) yield await clusterTarget(cluster)
}

/** Options for logging in to a single server. */
const loginOptionNames = [
  'tokenFile',
  'clientId',
  'redirectUri',
  'register',
  'origin',
  'watch',
  'provider',
] as const
/** Options for --login. */
const signInOptionNames = ['login', 'browser', 'loginTimeout', 'clientSecretFile'] as const
/** Options that apply to every target. */
const everywhere: readonly string[] = ['failOn', 'output']

/** The possible targets, with the options that apply to each. */
const targets = {
  url: {
    name: 'a URL',
    takes: [...loginOptionNames, ...signInOptionNames, 'directory', 'caFile', 'timeout'],
  },
  filename: { name: '-f', takes: ['provider', 'caFile', 'timeout'] },
  gateway: { name: '--gateway', takes: [...loginOptionNames, 'directory', 'caFile', 'timeout'] },
  client: { name: '--client', takes: ['entry', ...loginOptionNames, 'caFile', 'timeout'] },
  redis: { name: '--redis', takes: ['passwordFile', 'caFile', 'timeout'] },
  cluster: { name: '--cluster', takes: [] },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly takes: readonly string[] }>>

type TargetKind = keyof typeof targets

function targetOf(url: string | undefined, flags: DoctorFlags): TargetKind {
  const values: Readonly<Record<string, unknown>> = { ...flags, url }
  const selected = (Object.keys(targets) as TargetKind[]).filter((kind) => values[kind] !== undefined)
  const [only] = selected
  if (only === undefined || selected.length > 1)
    throw invalidConfig(
      `specify one of: the URL or the name of an MCP server, -f, --gateway, --client, --redis, --cluster; ${runningHint()}`,
    )
  return only
}

function refuseOthers(kind: TargetKind, flags: DoctorFlags, command: Command): void {
  const { name, takes } = targets[kind]
  const applicable: ReadonlySet<string> = new Set([kind, ...takes, ...everywhere])
  const inapplicable = givenOptions(command).filter((option) => !applicable.has(option.attributeName()))
  if (inapplicable.length > 0)
    throw invalidConfig(inapplicable.map(({ long }) => `${long}: has no effect with ${name}`).join('\n'))
  const { clientId, register, login } = flags
  refuseIdle(command, [
    [
      'redirectUri',
      clientId !== undefined || register || login,
      'has no effect without --client-id, --register or --login',
    ],
    ...idleWithLogin(flags),
  ])
  checkRedirectUri(flags)
}

function loginOf(flags: DoctorFlags): Pick<CommonOptions, 'login'> {
  const { login, clientSecretFile } = flags
  if (!login) return {}
  const secret =
    clientSecretFile === undefined ? undefined : readToken('--client-secret-file', clientSecretFile)
  return { login: loginOptions(flags, secret) }
}

function commonOptions(flags: DoctorFlags): CommonOptions {
  const { provider, redirectUri, clientId, origin } = flags
  if (provider !== undefined && profileNamed(provider) === undefined) {
    throw invalidConfig(
      `--provider: unknown provider; expected one of ${profiles.map(({ id }) => id).join(', ')}`,
    )
  }
  if (redirectUri !== undefined && !URL.canParse(redirectUri)) {
    throw invalidConfig('--redirect-uri: must be an absolute URL')
  }
  if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).origin !== origin)) {
    throw invalidConfig('--origin: must be an origin such as https://app.example.com')
  }
  const token = flags.tokenFile === undefined ? undefined : readToken('--token-file', flags.tokenFile)
  return {
    timeoutMs: flags.timeout * 1000,
    watchMs: flags.watch * 1000,
    register: flags.register,
    directories: flags.directory ?? [],
    proxy: proxyEnvironment(environment()),
    ...(origin !== undefined && { origin }),
    ...(redirectUri !== undefined && { redirectUri }),
    ...(clientId !== undefined && { clientId }),
    ...(provider !== undefined && { provider }),
    ...(token !== undefined && { token }),
    ...(flags.caFile !== undefined && { ca: readBounded('--ca-file', flags.caFile) }),
  }
}

/** Checks a URL, or a server by its name. A virtual server is checked together with its backends. */
async function* namedTargets(target: string, given: CommonOptions): AsyncGenerator<Examined> {
  const running = isUrl(target) ? undefined : runningServer(target)
  const skipped = running || isUrl(target) ? undefined : skippedServer(target)
  // A token for local programs is not a login, so this check skips the login.
  const common: CommonOptions =
    running?.token === undefined || given.login ? given : { token: running.token, depth: 'backend', ...given }
  if (running?.failure) yield { target, findings: [failedProgram(running.name, running.failure)] }
  else if (skipped) {
    const { name, why, fix } = skipped
    yield {
      target,
      findings: [failedProgram(name, { text: `gatehouse up skipped this server: ${why}`, fix })],
    }
  } else if (running?.kind === 'VirtualMCPServer') yield* gatewayTargets(running.url, common)
  else yield await remoteTarget(isUrl(target) ? target : (await urlOfTarget(target, undefined)).href, common)
}

/** Checks the gateway's own paths, then checks its endpoint as a client would. */
async function* gatewayTargets(address: string, common: CommonOptions): AsyncGenerator<Examined> {
  const { origin } = parseTarget(address, { withPath: true })
  const target = new URL(origin)
  const { timeoutMs = 10_000, ca, proxy, token } = common
  const path = new URL(address).pathname
  const endpoint = `${origin}${path === '/' ? '/mcp' : path}`
  const findings = await examineGateway({ target, timeoutMs, ca, proxy, token })
  yield { target: origin, findings }
  const isDown = findings.some(({ id, result }) => id === 'health' && result !== 'ok')
  if (!isDown) yield await remoteTarget(endpoint, common)
}

async function redisTarget(address: string, flags: DoctorFlags): Promise<Examined> {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') {
    throw invalidConfig('--redis: must be redis://host:port or rediss://host:port')
  }
  if (url.password !== '')
    throw invalidConfig('--redis: the URL must not contain a password; use --password-file')
  const { caFile, passwordFile } = flags
  const findings = await examineRedis({
    url,
    timeoutMs: flags.timeout * 1000,
    password: passwordFile === undefined ? undefined : readBounded('--password-file', passwordFile).trim(),
    ca: caFile === undefined ? undefined : readBounded('--ca-file', caFile),
  })
  return { target: `${url.protocol}//${url.host}`, findings }
}
