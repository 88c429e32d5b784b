/**
 * A tunnel provider's settings, from `--tunnel-provider` and the JSON in `--provider-args`. Reports all errors,
 * including unknown keys and wrong types. Does not start anything, because `--dry-run` only checks the settings.
 */
import { accessSync, constants } from 'node:fs'
import { GatehouseError, nearest } from '../../../schemas/index.ts'
import { canStart, type Environment, readVariable, rotatingSecret, variables } from '../../config/index.ts'
import { Secret } from '../../observe/index.ts'
import { isLoopbackHost, type ProxyEnvironment } from '../../net/index.ts'
import { execProvider } from './exec.ts'
import type { TunnelProvider } from './provider.ts'
import { relayProvider } from './relay-client.ts'
import { hostnamePattern } from './relay-protocol.ts'
import { sshProvider } from './ssh.ts'

export const tunnelProviders = ['ssh', 'relay', 'exec'] as const

export interface TunnelParts {
  readonly env: Environment
  readonly ca: string | undefined
  readonly proxy: ProxyEnvironment | undefined
}

/** Throws INVALID_CONFIG with one line per error. */
export function makeTunnelProvider(name: string, json: string, parts: TunnelParts): TunnelProvider {
  const kind = tunnelProviders.find((known) => known === name)
  if (kind === undefined) throw refused([`--tunnel-provider: must be one of ${tunnelProviders.join(', ')}`])
  const reader = new Reader(parseObject(json))
  const provider = makers[kind](reader, parts)
  reader.finish()
  if (reader.violations.length > 0) throw refused(reader.violations)
  return provider()
}

const makers: Record<
  (typeof tunnelProviders)[number],
  (args: Reader, parts: TunnelParts) => () => TunnelProvider
> = {
  ssh(args, { env }) {
    const settings = {
      host:
        args.text('host', {
          required: true,
          pattern: /^[A-Za-z0-9_][\w.:-]*$/,
          rule: 'must be a host name',
        }) ?? '',
      user: args.text('user', { pattern: /^[A-Za-z0-9_][\w.-]*$/, rule: 'must be a user name' }),
      port: args.port('port'),
      remoteBind: remoteBind(args),
      identityFile: args.file('identity-file'),
      url: args.url('url', /^https?:$/),
    }
    if (!isHere('ssh', env)) args.violations.push('--tunnel-provider ssh: ssh was not found in PATH')
    return () => sshProvider(settings, env)
  },
  relay(args, { env, ca, proxy }) {
    const url = relayUrl(args)
    const hostname = args.text('hostname', { pattern: hostnamePattern, rule: 'must be a DNS label' })
    const file = args.text('auth-token-file')
    const given = readVariable(env, variables.tunnelAuthToken)
    const authToken = args.attempt(() => tokenFrom(file, given))
    if (!authToken)
      args.failure(
        'auth-token-file',
        `is required unless the variable ${variables.tunnelAuthToken.name} is set`,
      )
    return () => relayProvider({ url, hostname, authToken: authToken ?? (() => new Secret('')), ca, proxy })
  },
  exec(args, { env }) {
    const command = commandOf(args, env)
    const urlPattern = args.pattern('url-pattern') ?? /https?:\/\/\S+/
    const authTokenEnv = args.text('auth-token-env', {
      pattern: /^[A-Za-z_]\w*$/,
      rule: 'must be a valid variable name',
    })
    const given = readVariable(env, variables.tunnelAuthToken)
    const token = given === undefined ? undefined : new Secret(given)
    if (authTokenEnv !== undefined && !token) {
      args.failure('auth-token-env', `requires the variable ${variables.tunnelAuthToken.name}`)
    }
    return () => execProvider({ command, urlPattern, authTokenEnv }, env, token)
  },
}

function remoteBind(args: Reader): string {
  const pattern = /^(?:(?:[\w.*-]*|\[[\da-fA-F:]+\]):)?\d{1,5}$/
  const value = args.text('remote-bind', { pattern, rule: 'must be [address:]port' }) ?? '0'
  if (Number(value.split(':').at(-1)) > 65_535) args.failure('remote-bind', 'the port must be at most 65535')
  return value
}

/** Requires TLS, because the token would otherwise be sent in cleartext. */
function relayUrl(args: Reader): string {
  const value = args.url('url', /^(?:wss?|https?):$/, { required: true })
  if (value === undefined) return ''
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(value)
  if (pathname !== '/' || search + hash + username + password !== '') {
    args.failure('url', 'must contain only a scheme and a host')
  }
  if (/^(?:ws|http):$/.test(protocol) && !isLoopbackHost(hostname)) {
    args.failure('url', 'must begin with wss:// or https://, except for a relay on this machine')
  }
  return value
}

function commandOf(args: Reader, env: Environment): readonly string[] {
  const command = args.list('command')
  const [program] = command
  if (program === undefined) return command
  if (!command.some((part) => part.includes('{target}') || part.includes('{port}'))) {
    args.failure('command', 'must contain {target} or {port}, which is replaced by the proxy’s address')
  }
  if (!isHere(program, env))
    args.failure('command', `the program ${program} was not found or is not executable`)
  return command
}

function tokenFrom(file: string | undefined, given: string | undefined): (() => Secret) | undefined {
  if (file !== undefined) return rotatingSecret(file)
  if (given === undefined) return undefined
  const secret = new Secret(given)
  return () => secret
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  } catch {
    // The code below reports the error.
  }
  throw refused(['--provider-args: must be a JSON object'])
}

interface TextRule {
  readonly required?: boolean
  readonly pattern?: RegExp
  readonly rule?: string
}

/** Reads and removes the object's fields, and records errors. Any remaining fields are unknown. */
class Reader {
  readonly violations: string[] = []
  readonly #values: Map<string, unknown>
  readonly #known: string[] = []

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = new Map(Object.entries(values))
  }

  failure(name: string, rule: string): void {
    this.violations.push(`--provider-args ${name}: ${rule}`)
  }

  #take(name: string): unknown {
    this.#known.push(name)
    const value = this.#values.get(name)
    this.#values.delete(name)
    return value
  }

  text(name: string, { required = false, pattern, rule = 'is invalid' }: TextRule = {}): string | undefined {
    const value = this.#take(name)
    if (value === undefined) {
      if (required) this.failure(name, 'is required')
      return undefined
    }
    if (typeof value !== 'string' || value === '') this.failure(name, 'must be a non-empty string')
    else if (pattern && !pattern.test(value)) this.failure(name, rule)
    else return value
    return undefined
  }

  port(name: string): number | undefined {
    const value = this.#take(name)
    if (value === undefined) return undefined
    if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536) return value
    this.failure(name, 'must be a whole number from 1 to 65535')
    return undefined
  }

  url(
    name: string,
    protocols: RegExp,
    { required = false }: { readonly required?: boolean } = {},
  ): string | undefined {
    const value = this.text(name, { required })
    if (value === undefined || (URL.canParse(value) && protocols.test(new URL(value).protocol))) return value
    this.failure(name, 'must be an absolute URL')
    return undefined
  }

  /** Reads the path of a file, which must be readable. */
  file(name: string): string | undefined {
    const path = this.text(name)
    if (path === undefined) return undefined
    try {
      accessSync(path, constants.R_OK)
      return path
    } catch {
      this.failure(name, `cannot read the file ${path}`)
      return undefined
    }
  }

  list(name: string): readonly string[] {
    const value = this.#take(name)
    if (
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((item) => typeof item === 'string' && item !== '')
    )
      return value
    this.failure(name, 'must be a list of the program and its arguments')
    return []
  }

  pattern(name: string): RegExp | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    try {
      return new RegExp(value)
    } catch {
      this.failure(name, 'must be a regular expression')
      return undefined
    }
  }

  attempt<T>(run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      this.violations.push(error.message)
      return undefined
    }
  }

  finish(): void {
    for (const name of this.#values.keys()) {
      const near = nearest(name, this.#known)
      this.failure(name, `is unknown${near === undefined ? '' : `; did you mean ${near}?`}`)
    }
  }
}

function refused(violations: readonly string[]): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail: violations.join('\n') })
}

function isHere(program: string, env: Environment): boolean {
  return canStart(program, { env, cwd: process.cwd(), platform: process.platform })
}
