/**
 * Token exchange for requests to the target: the --token-exchange-* flags.
 *
 * Source: docs/reference/specification/proxy-command.md#rules, rule 7 and "Token exchange flags"; RFC 8693.
 */
import { headerNameViolation } from '../../../schemas/index.ts'
import type { Secret } from '../../observe/index.ts'
import { type Environment, variables } from './env.ts'
import { type SettingErrors, type InputKey, secretFrom } from '../common/setting-errors.ts'
import { proxyFlags, type ProxyInput } from './flags.ts'

export interface ExchangeSettings {
  readonly url: string
  readonly audience: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: Secret | undefined
  /** Header for the exchanged token; undefined when the token replaces Authorization. */
  readonly headerName: string | undefined
  readonly scopes: readonly string[] | undefined
  /** Full URN of the token type. */
  readonly subjectTokenType: string
}

const urn = 'urn:ietf:params:oauth:token-type:'
const types: ReadonlySet<string> = new Set(['access_token', 'id_token', 'jwt'])

export function exchangeSettings(
  input: ProxyInput,
  env: Environment,
  violations: SettingErrors,
  warnings: string[],
): ExchangeSettings | undefined {
  const url = violations.url('tokenExchangeUrl')
  if (input.tokenExchangeUrl === undefined) {
    violations.needs(dependentFlags, '--token-exchange-url to have an effect')
    return undefined
  }
  violations.exclusive('tokenExchangeClientSecret', 'tokenExchangeClientSecretFile')
  const clientId = violations.text('tokenExchangeClientId')
  const secretGiven =
    violations.given('tokenExchangeClientSecret') || violations.given('tokenExchangeClientSecretFile')
  if (secretGiven && clientId === undefined) {
    violations.needs(
      ['tokenExchangeClientSecret', 'tokenExchangeClientSecretFile'],
      '--token-exchange-client-id',
    )
  }
  if (violations.given('tokenExchangeClientSecret')) {
    warnings.push(
      '--token-exchange-client-secret is visible in process lists; use a file or the environment instead',
    )
  }
  return {
    url: url ?? '',
    audience: violations.text('tokenExchangeAudience'),
    clientId,
    clientSecret:
      clientId === undefined
        ? undefined
        : secretFrom(violations, env, {
            flag: 'tokenExchangeClientSecret',
            file: 'tokenExchangeClientSecretFile',
            variable: variables.tokenExchangeClientSecret,
          }),
    headerName: headerName(violations),
    scopes: violations.scopes('tokenExchangeScopes'),
    subjectTokenType: subjectTokenType(violations),
  }
}

const dependentFlags = Object.keys(proxyFlags).filter(
  (key): key is InputKey => key.startsWith('tokenExchange') && key !== 'tokenExchangeUrl',
)

function headerName(violations: SettingErrors): string | undefined {
  const name = violations.text('tokenExchangeHeaderName')
  if (name === undefined || name.toLowerCase() === 'authorization') return undefined
  const problem = headerNameViolation(name, 'injected')
  if (problem !== undefined) violations.about('tokenExchangeHeaderName', problem)
  return name
}

function subjectTokenType(violations: SettingErrors): string {
  const given = violations.text('tokenExchangeSubjectTokenType') ?? 'access_token'
  const short = given.startsWith(urn) ? given.slice(urn.length) : given
  if (!types.has(short)) {
    violations.about(
      'tokenExchangeSubjectTokenType',
      'must be access_token, id_token, jwt or one of their URNs',
    )
  }
  return `${urn}${short}`
}
