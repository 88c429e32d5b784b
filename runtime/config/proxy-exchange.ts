/**
 * Token exchange on the way to the target: the --token-exchange-* flags.
 *
 * Source: spec document 1, rule 7 and "Token exchange flags"; RFC 8693.
 */
import { headerNameProblem } from '../../schemas/index.ts'
import type { Secret } from '../observe/index.ts'
import { type Environment, variables } from './env.ts'
import type { Faults, InputKey } from './faults.ts'
import { proxyFlags, type ProxyInput } from './proxy-flags.ts'
import { secretFrom } from './secret-precedence.ts'

export interface ExchangeSettings {
  readonly url: string
  readonly audience: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: Secret | undefined
  /** Undefined: the exchanged token replaces Authorization. */
  readonly headerName: string | undefined
  readonly scopes: readonly string[] | undefined
  /** Full URN. */
  readonly subjectTokenType: string
}

const urn = 'urn:ietf:params:oauth:token-type:'
const types: ReadonlySet<string> = new Set(['access_token', 'id_token', 'jwt'])

export function exchangeSettings(
  input: ProxyInput,
  env: Environment,
  faults: Faults,
  warnings: string[],
): ExchangeSettings | undefined {
  const url = faults.url('tokenExchangeUrl')
  if (input.tokenExchangeUrl === undefined) {
    faults.needs(others, '--token-exchange-url: nothing would be exchanged otherwise')
    return undefined
  }
  faults.exclusive('tokenExchangeClientSecret', 'tokenExchangeClientSecretFile')
  const clientId = faults.text('tokenExchangeClientId')
  const secretGiven =
    faults.given('tokenExchangeClientSecret') || faults.given('tokenExchangeClientSecretFile')
  if (secretGiven && clientId === undefined) {
    faults.needs(['tokenExchangeClientSecret', 'tokenExchangeClientSecretFile'], '--token-exchange-client-id')
  }
  if (faults.given('tokenExchangeClientSecret')) {
    warnings.push('--token-exchange-client-secret shows in process lists; a file or the environment does not')
  }
  return {
    url: url ?? '',
    audience: faults.text('tokenExchangeAudience'),
    clientId,
    clientSecret:
      clientId === undefined
        ? undefined
        : secretFrom(faults, env, {
            flag: 'tokenExchangeClientSecret',
            file: 'tokenExchangeClientSecretFile',
            variable: variables.tokenExchangeClientSecret,
          }),
    headerName: headerName(faults),
    scopes: faults.scopes('tokenExchangeScopes'),
    subjectTokenType: subjectTokenType(faults),
  }
}

const others = Object.keys(proxyFlags).filter(
  (key): key is InputKey => key.startsWith('tokenExchange') && key !== 'tokenExchangeUrl',
)

function headerName(faults: Faults): string | undefined {
  const name = faults.text('tokenExchangeHeaderName')
  if (name === undefined || name.toLowerCase() === 'authorization') return undefined
  const problem = headerNameProblem(name, 'injected')
  if (problem !== undefined) faults.about('tokenExchangeHeaderName', problem)
  return name
}

function subjectTokenType(faults: Faults): string {
  const given = faults.text('tokenExchangeSubjectTokenType') ?? 'access_token'
  const short = given.startsWith(urn) ? given.slice(urn.length) : given
  if (!types.has(short)) {
    faults.about('tokenExchangeSubjectTokenType', 'must be access_token, id_token, jwt or one of their URNs')
  }
  return `${urn}${short}`
}
