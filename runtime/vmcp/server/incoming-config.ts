import { userInfo } from 'node:os'
import { GatehouseError, type RuntimeIssuer } from '../../../schemas/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import type { IncomingConfig } from '../../incoming/index.ts'
import { followCaBundle, type Log } from '../../net/index.ts'
import { roleClaimsOf } from '../../outgoing/index.ts'
import { groupClaimsOf } from '../call/guards.ts'

/**
 * Converts `incomingAuth` to the settings of the incoming module. Resolves variables and files. Throws INVALID_CONFIG
 * if a variable or file cannot be read.
 */
export function incomingConfig(
  config: VmcpConfig,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): IncomingConfig {
  const { type, oidc, issuers, dpop } = config.incomingAuth
  if (type === 'anonymous') return { type }
  if (type === 'local') return { type, username: userInfo().username }
  if (!oidc)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'incomingAuth.oidc: is required when type is oidc' })
  return {
    type,
    oidc: { ...resolved(oidc, 'incomingAuth.oidc', env, log), dpop },
    issuers: issuers?.map((issuer, index) => resolved(issuer, `incomingAuth.issuers[${index}]`, env, log)),
    groupClaims: renamedClaims(config),
  }
}

/** Returns the claims from which policies and role mappings read groups or roles. */
export function renamedClaims({ incomingAuth, outgoingAuth }: VmcpConfig): readonly string[] {
  const strategies = [outgoingAuth.default, ...Object.values(outgoingAuth.backends ?? {})]
  return [...groupClaimsOf(incomingAuth.authz), ...roleClaimsOf(strategies)]
}

type Environment = Readonly<Record<string, string | undefined>>
type Unresolved = Pick<RuntimeIssuer, 'clientSecretEnv' | 'caBundlePath'>

function resolved<Issuer extends Unresolved>(issuer: Issuer, field: string, env: Environment, log: Log) {
  const { clientSecretEnv, caBundlePath, ...rest } = issuer
  return {
    ...rest,
    clientSecret:
      clientSecretEnv === undefined
        ? undefined
        : secretFrom(env, clientSecretEnv, `${field}.clientSecretEnv`),
    tls: followCaBundle(caBundlePath, `${field}.caBundlePath`, log),
  }
}

function secretFrom(env: Environment, name: string, field: string): string {
  const value = env[name]
  if (value === undefined || value === '') {
    throw new GatehouseError('INVALID_CONFIG', { detail: `${field}: the variable ${name} is not set` })
  }
  return value
}
