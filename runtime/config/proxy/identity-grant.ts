/**
 * The id-jag grant: the user's ID token, which another program keeps in a file, is exchanged for an identity assertion
 * at the user's identity provider. The target's authorization server accepts the assertion as a grant.
 *
 * Source: draft-ietf-oauth-identity-assertion-authz-grant; MCP extension "Enterprise-Managed Authorization".
 */
import type { Log } from '../../net/index.ts'
import { type Fetch, type OAuthClient, requestIdentityAssertion, typedServer } from '../../oauth/index.ts'
import type { InputKey, SettingErrors } from '../common/setting-errors.ts'
import { jwtInFile, privateKeyInFile, secretInFile } from './credential-files.ts'
import { flagOf } from './flags.ts'

/** Settings of the identity provider. */
export const identitySettings = [
  'remoteAuthIdpTokenUrl',
  'remoteAuthIdpClientId',
  'remoteAuthIdpClientSecretFile',
  'remoteAuthIdpPrivateKeyFile',
  'remoteAuthIdTokenFile',
] as const satisfies readonly InputKey[]

const required = [
  'remoteAuthIdpTokenUrl',
  'remoteAuthIdpClientId',
  'remoteAuthIdTokenFile',
] as const satisfies readonly InputKey[]

/** The parameters of a token request for a login without a user. */
export interface MachineGrantRequest {
  /** The audience that the authorization server expects in an assertion. */
  readonly audience: string | undefined
  /** The resource and the scopes of the token. */
  readonly resource: string | undefined
  readonly scopes: readonly string[]
  readonly fetch: Fetch
  readonly signal: AbortSignal
  readonly log: Log
}

/** Requests an assertion for one token request. Rejects with OAuthClientError, or with the signal's reason. */
export type IdentityAssertionSource = (request: MachineGrantRequest) => Promise<string>

/** Reports missing, conflicting and unusable settings, and returns undefined if there are any. */
export function identityAssertion(violations: SettingErrors): IdentityAssertionSource | undefined {
  for (const key of required)
    if (!violations.given(key)) violations.about('remoteAuthGrant', `id-jag requires ${flagOf(key)}`)
  if (violations.given('remoteAuthTokenUrl'))
    violations.about(
      'remoteAuthTokenUrl',
      'cannot be used with id-jag, whose assertions contain the issuer; set --remote-auth-issuer',
    )
  const url = violations.url('remoteAuthIdpTokenUrl')
  const client = providerClient(violations, url)
  const idToken = jwtInFile(violations, 'remoteAuthIdTokenFile')
  if (url === undefined || !client || !idToken) return undefined
  const server = typedServer(undefined, url)
  return ({ audience, resource, scopes, fetch, signal, log }) =>
    requestIdentityAssertion({
      server,
      client: client(log),
      idToken: idToken(log),
      audience,
      resource,
      scopes,
      fetch,
      signal,
      endpointName: 'the token endpoint of the identity provider',
    })
}

/** The client that the ID token was issued to. If it has neither a secret nor a key, the client is public. */
function providerClient(
  violations: SettingErrors,
  tokenUrl: string | undefined,
): ((log: Log) => OAuthClient) | undefined {
  violations.exclusive('remoteAuthIdpClientSecretFile', 'remoteAuthIdpPrivateKeyFile')
  const clientId = violations.text('remoteAuthIdpClientId')
  const secret = secretInFile(violations, 'remoteAuthIdpClientSecretFile')
  const key = privateKeyInFile(violations, 'remoteAuthIdpPrivateKeyFile')
  if (clientId === undefined) return undefined
  return (log) => ({
    clientId,
    clientSecret: secret?.(log).reveal(),
    privateKey: key?.(log),
    // The issuer is unknown here, so the endpoint is the only identifier that both sides share.
    assertionAudience: tokenUrl,
  })
}
