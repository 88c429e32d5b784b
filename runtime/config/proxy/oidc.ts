/**
 * Authentication at the proxy's own endpoint: the --oidc-* flags.
 *
 * Setting the issuer, key set URL or introspection URL enables authentication. Any other --oidc-* flag without one of
 * them is an error, because the operator expects protection. runtime/incoming trusts loopback hosts that the operator
 * specifies.
 * Source: docs/reference/specification/proxy-command.md#incoming, "Incoming (OIDC) flags".
 */
import type { Secret } from '../../observe/index.ts'
import { type Environment, variables } from './env.ts'
import { type SettingErrors, secretFrom } from '../common/setting-errors.ts'
import { flagOf, type ProxyInput } from './flags.ts'

export interface IncomingOidc {
  readonly issuer: string | undefined
  /** Expected audience. Default: the resource URL. */
  readonly audience: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: Secret | undefined
  readonly introspectionUrl: string | undefined
  readonly jwksUrl: string | undefined
  /** Advertised scopes. Default: openid. */
  readonly scopes: readonly string[] | undefined
  readonly caBundlePath: string | undefined
  /** Flag or field that specifies the CA bundle, for error messages. */
  readonly caBundleSetting: string
  /** Allows private addresses for discovery and keys. */
  readonly allowPrivateIp: boolean
  /** Allows private addresses for introspection. */
  readonly introspectionAllowPrivateIp: boolean
  readonly insecureAllowHttp: boolean
  /** URL of this proxy, from a configuration file. */
  readonly resource?: string | undefined
  /** File with the bearer token for requests to the key set, from a configuration file. */
  readonly jwksAuthTokenPath?: string | undefined
  /** Subject of accepted tokens, from a configuration file. */
  readonly subject?: string | undefined
  /** True if the protected-resource document lists the issuer, from a configuration file. */
  readonly advertise?: boolean | undefined
}

/** An additional issuer from a configuration file. The issuer's subjects get a prefix. */
export interface IncomingIssuer extends IncomingOidc {
  readonly issuer: string
  readonly audience: string
  /** Prefix of subjects. Default: the issuer followed by `#`. */
  readonly subjectPrefix: string | undefined
  readonly groupPrefix: string | undefined
}

const dependent = [
  'oidcAudience',
  'oidcClientId',
  'oidcClientSecret',
  'oidcScopes',
  'oidcCaBundle',
  'oidcAllowPrivateIp',
  'oidcInsecureAllowHttp',
] as const

export function oidcSettings(
  input: ProxyInput,
  env: Environment,
  violations: SettingErrors,
): IncomingOidc | undefined {
  const allowHttp = input.oidcInsecureAllowHttp ?? false
  const issuer = violations.url('oidcIssuer', allowHttp)
  const jwksUrl = violations.url('oidcJwksUrl', allowHttp)
  const introspectionUrl = violations.url('oidcIntrospectionUrl', allowHttp)
  const triggers = ['oidcIssuer', 'oidcJwksUrl', 'oidcIntrospectionUrl'] as const
  if (!triggers.some((key) => input[key] !== undefined)) {
    violations.needs(
      dependent,
      '--oidc-issuer, --oidc-jwks-url or --oidc-introspection-url to have an effect',
    )
    return undefined
  }
  const clientId = violations.text('oidcClientId')
  if (violations.given('oidcClientSecret') && clientId === undefined)
    violations.needs(['oidcClientSecret'], '--oidc-client-id')
  const clientSecret =
    clientId === undefined
      ? undefined
      : secretFrom(violations, env, { flag: 'oidcClientSecret', variable: variables.oidcClientSecret })
  return {
    issuer,
    audience: violations.text('oidcAudience'),
    clientId,
    clientSecret,
    introspectionUrl,
    jwksUrl,
    scopes: violations.scopes('oidcScopes'),
    caBundlePath: violations.text('oidcCaBundle'),
    caBundleSetting: flagOf('oidcCaBundle'),
    allowPrivateIp: input.oidcAllowPrivateIp ?? false,
    introspectionAllowPrivateIp: input.oidcAllowPrivateIp ?? false,
    insecureAllowHttp: allowHttp,
  }
}
