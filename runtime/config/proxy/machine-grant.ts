/**
 * The grant of a login without a user: client_credentials with a client secret or a private key, jwt-bearer with a
 * token that the platform issued to the workload, or id-jag with the ID token of a user who signed in elsewhere.
 *
 * Each token request rereads the files, so a replaced secret, key or token takes effect without a restart.
 * Source: RFC 6749 section 4.4; RFC 7523 sections 2.1 and 2.2; MCP extensions "OAuth Client Credentials" (SEP-1046) and
 * "Workload Identity Federation" (SEP-1933).
 */
import type { Log } from '../../net/index.ts'
import { type AssertionAlg, assertionAlgs, type OAuthClient } from '../../oauth/index.ts'
import type { Secret } from '../../observe/index.ts'
import { quoteShortened, type InputKey, type SettingErrors } from '../common/setting-errors.ts'
import { jwtInFile, privateKeyInFile, secretInFile } from './credential-files.ts'
import { type Environment, readVariable, variables } from './env.ts'
import { flagOf, proxyFlags } from './flags.ts'
import { identityAssertion, identitySettings, type MachineGrantRequest } from './identity-grant.ts'

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

type GrantName = (typeof proxyFlags.remoteAuthGrant.values)[number]

/** Credentials of a token request without a user. Without an assertion, the grant is client_credentials. */
export type MachineGrant =
  | { readonly client: OAuthClient; readonly assertion?: undefined }
  | {
      /** The client; undefined when the assertion alone identifies the workload. */
      readonly client: OAuthClient | undefined
      /** The JWT that serves as the grant (jwt-bearer, id-jag). */
      readonly assertion: string
    }

/** Returns the current grant. Called for each token request. */
export type MachineGrantSource = (request: MachineGrantRequest) => MachineGrant | Promise<MachineGrant>

/**
 * Returns the grant; undefined for an unknown grant. Reports an unknown grant, and settings that the grant does not
 * use.
 */
export function grantName(env: Environment, violations: SettingErrors): GrantName | undefined {
  const { values, default: byDefault } = proxyFlags.remoteAuthGrant
  const flag = violations.text('remoteAuthGrant')
  const given = flag ?? readVariable(env, variables.remoteGrant) ?? byDefault
  const grant = values.find((known) => known === given)
  if (grant === undefined) {
    const subject = flag === undefined ? variables.remoteGrant.name : flagOf('remoteAuthGrant')
    violations.add(subject, `must be one of ${values.join(', ')}, found ${quoteShortened(given)}`)
  }
  if (isMachineGrant(grant)) {
    for (const key of userOnly)
      if (violations.given(key)) violations.about(key, `has no effect with the ${grant} grant`)
  } else violations.needs(machineOnly, '--remote-auth-grant client_credentials, jwt-bearer or id-jag')
  if (grant !== 'id-jag') violations.needs(identitySettings, '--remote-auth-grant id-jag')
  if (grant !== 'jwt-bearer') violations.needs(['remoteAuthAssertionFile'], '--remote-auth-grant jwt-bearer')
  return grant
}

/** True for a grant that requires no user. */
export function isMachineGrant(grant: GrantName | undefined): boolean {
  return grant !== undefined && grant !== 'authorization_code'
}

/**
 * Returns the grant for a login without a user; undefined if the grant requires a user. Reports missing and conflicting
 * settings.
 */
export function machineGrant(
  grant: GrantName | undefined,
  violations: SettingErrors,
  { id, secret }: { readonly id: string | undefined; readonly secret: Secret | undefined },
): MachineGrantSource | undefined {
  if (!isMachineGrant(grant)) return undefined
  const client = machineClient(violations, id, secret)
  if (grant === 'jwt-bearer') {
    if (id === undefined) violations.needs(['remoteAuthPrivateKeyFile'], '--remote-auth-client-id')
    const assertion = assertionOf(violations)
    return assertion && (({ log }) => ({ client: client?.(log), assertion: assertion(log) }))
  }
  if (id === undefined) {
    violations.about(
      'remoteAuthGrant',
      `${grant} requires --remote-auth-client-id, because such a client is not registered dynamically`,
    )
  }
  if (secret === undefined && !secretGiven(violations) && !violations.given('remoteAuthPrivateKeyFile')) {
    violations.about(
      'remoteAuthGrant',
      `${grant} requires --remote-auth-client-secret-file or --remote-auth-private-key-file`,
    )
  }
  if (grant === 'client_credentials') return client && (({ log }) => ({ client: client(log) }))
  const assertion = identityAssertion(violations)
  if (!client || !assertion) return undefined
  return async (request) => ({ client: client(request.log), assertion: await assertion(request) })
}

/**
 * Returns a function that returns the client with its current credential. Returns undefined without a client id.
 * Reports conflicting and unusable credentials.
 */
function machineClient(
  violations: SettingErrors,
  clientId: string | undefined,
  clientSecret: Secret | undefined,
): ((log: Log) => OAuthClient) | undefined {
  const alg = signingAlg(violations)
  const privateKey = privateKeyInFile(violations, 'remoteAuthPrivateKeyFile', alg)
  const hasKey = violations.given('remoteAuthPrivateKeyFile')
  if (hasKey && clientSecret !== undefined) {
    violations.add(
      `${secretSource(violations)}, ${flagOf('remoteAuthPrivateKeyFile')}`,
      'set only one of them',
    )
  }
  if (clientId === undefined) return undefined
  if (privateKey) return (log) => ({ clientId, privateKey: privateKey(log) })
  if (clientSecret === undefined) return () => ({ clientId })
  const isInFile = !violations.given('remoteAuthClientSecret')
  const secret = (isInFile && secretInFile(violations, 'remoteAuthClientSecretFile')) || (() => clientSecret)
  return (log) => ({ clientId, clientSecret: secret(log).reveal() })
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

function assertionOf(violations: SettingErrors): ((log: Log) => string) | undefined {
  if (!violations.given('remoteAuthAssertionFile')) {
    violations.about('remoteAuthGrant', 'jwt-bearer requires --remote-auth-assertion-file')
    return undefined
  }
  return jwtInFile(violations, 'remoteAuthAssertionFile')
}

function secretGiven(violations: SettingErrors): boolean {
  return violations.given('remoteAuthClientSecret') || violations.given('remoteAuthClientSecretFile')
}

function secretSource(violations: SettingErrors): string {
  if (violations.given('remoteAuthClientSecret')) return flagOf('remoteAuthClientSecret')
  if (violations.given('remoteAuthClientSecretFile')) return flagOf('remoteAuthClientSecretFile')
  return variables.remoteClientSecret.name
}
