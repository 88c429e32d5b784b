/**
 * The client for a login without a user. It uses the client_credentials grant, with a client secret or a private key.
 *
 * Files are read again for each token request, so that a replaced secret or key takes effect without a restart.
 * Source: RFC 6749 section 4.4; RFC 7523 section 2.2; MCP extension "OAuth Client Credentials" (SEP-1046).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type AssertionAlg, assertionAlgs, type OAuthClient, readClientKey } from '../../oauth/index.ts'
import type { Secret } from '../../observe/index.ts'
import { quoteShortened, type InputKey, type SettingErrors } from '../common/setting-errors.ts'
import { readSecretFile } from '../common/secrets.ts'
import { type Environment, readVariable, variables } from './env.ts'
import { flagOf, proxyFlags } from './flags.ts'

/** Settings that apply only when a user logs in. */
const userOnly = [
  'remoteAuthAuthorizeUrl',
  'remoteAuthCallbackPort',
  'remoteAuthScopeParamName',
  'remoteAuthSkipBrowser',
  'remoteAuthTimeout',
  'remoteAuthEphemeral',
] as const satisfies readonly InputKey[]

const machineOnly = [
  'remoteAuthPrivateKeyFile',
  'remoteAuthSigningAlg',
] as const satisfies readonly InputKey[]

/** True for client_credentials. Reports an unknown grant, and settings that the grant does not use. */
export function isMachineGrant(env: Environment, violations: SettingErrors): boolean {
  const flag = violations.text('remoteAuthGrant')
  const grant = flag ?? readVariable(env, variables.remoteGrant) ?? proxyFlags.remoteAuthGrant.default
  if (!proxyFlags.remoteAuthGrant.values.some((known) => known === grant)) {
    const subject = flag === undefined ? variables.remoteGrant.name : flagOf('remoteAuthGrant')
    violations.add(
      subject,
      `must be authorization_code or client_credentials, found ${quoteShortened(grant)}`,
    )
  }
  const isMachine = grant === 'client_credentials'
  for (const key of isMachine ? userOnly : []) {
    if (violations.given(key)) violations.about(key, 'has no effect with the client_credentials grant')
  }
  if (!isMachine) violations.needs(machineOnly, '--remote-auth-grant client_credentials')
  return isMachine
}

/** Returns a function that returns the client with its current credential. Reports missing and conflicting settings. */
export function machineClient(
  violations: SettingErrors,
  clientId: string | undefined,
  clientSecret: Secret | undefined,
): (() => OAuthClient) | undefined {
  if (clientId === undefined) {
    violations.about(
      'remoteAuthGrant',
      'client_credentials requires --remote-auth-client-id, because such a client is not registered dynamically',
    )
  }
  const alg = signingAlg(violations)
  const privateKey = privateKeyOf(violations, alg)
  const hasKey = violations.given('remoteAuthPrivateKeyFile')
  if (hasKey && clientSecret !== undefined) {
    violations.add(
      `${secretSource(violations)}, ${flagOf('remoteAuthPrivateKeyFile')}`,
      'set only one of them',
    )
  }
  if (!hasKey && clientSecret === undefined && !secretGiven(violations)) {
    violations.about(
      'remoteAuthGrant',
      'client_credentials requires --remote-auth-client-secret-file or --remote-auth-private-key-file',
    )
  }
  if (clientId === undefined) return undefined
  if (privateKey) return () => ({ clientId, privateKey: privateKey() })
  if (clientSecret === undefined) return undefined
  const path = violations.given('remoteAuthClientSecret')
    ? undefined
    : violations.text('remoteAuthClientSecretFile')
  const secret = path === undefined ? () => clientSecret : rereading(clientSecret, () => readSecretFile(path))
  return () => ({ clientId, clientSecret: secret().reveal() })
}

function signingAlg(violations: SettingErrors): AssertionAlg | undefined {
  const given = violations.text('remoteAuthSigningAlg')
  if (given === undefined) return undefined
  if (!violations.given('remoteAuthPrivateKeyFile'))
    violations.needs(['remoteAuthSigningAlg'], '--remote-auth-private-key-file')
  const alg = assertionAlgs.find((known) => known === given)
  if (alg === undefined) {
    const rule = `must be one of ${assertionAlgs.join(', ')}, found ${quoteShortened(given)}`
    violations.about('remoteAuthSigningAlg', rule)
  }
  return alg
}

function privateKeyOf(violations: SettingErrors, alg: AssertionAlg | undefined) {
  const path = violations.text('remoteAuthPrivateKeyFile')
  if (path === undefined) return undefined
  const read = () => readClientKey(readSecretFile(path).reveal(), `the file ${path}`, alg)
  const first = violations.attempt(read, flagOf('remoteAuthPrivateKeyFile'))
  return first && rereading(first, read)
}

/**
 * Returns a function that calls `read` and returns its value. While `read` throws INVALID_CONFIG, the last value
 * (initially `first`) stays in use.
 */
function rereading<T>(first: T, read: () => T): () => T {
  let last = first
  return () => {
    try {
      last = read()
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
    }
    return last
  }
}

function secretGiven(violations: SettingErrors): boolean {
  return violations.given('remoteAuthClientSecret') || violations.given('remoteAuthClientSecretFile')
}

function secretSource(violations: SettingErrors): string {
  if (violations.given('remoteAuthClientSecret')) return flagOf('remoteAuthClientSecret')
  if (violations.given('remoteAuthClientSecretFile')) return flagOf('remoteAuthClientSecretFile')
  return variables.remoteClientSecret.name
}
