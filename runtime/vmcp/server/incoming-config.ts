import { userInfo } from 'node:os'
import { GatehouseError } from '../../../schemas/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import type { IncomingConfig } from '../../incoming/index.ts'
import { followCaBundle } from '../../net/index.ts'

/**
 * Converts `incomingAuth` to the settings of the incoming module, and resolves variables and files. Throws
 * INVALID_CONFIG when one of them cannot be read.
 */
export function incomingConfig(
  config: VmcpConfig,
  env: Readonly<Record<string, string | undefined>>,
): IncomingConfig {
  const { type, oidc } = config.incomingAuth
  if (type === 'anonymous') return { type }
  if (type === 'local') return { type, username: userInfo().username }
  if (!oidc)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'incomingAuth.oidc: is required when type is oidc' })
  const { clientSecretEnv, caBundlePath, ...rest } = oidc
  return {
    type,
    oidc: {
      ...rest,
      clientSecret: clientSecretEnv === undefined ? undefined : secretFrom(env, clientSecretEnv),
      tls: followCaBundle(caBundlePath, 'incomingAuth.oidc.caBundlePath'),
    },
  }
}

function secretFrom(env: Readonly<Record<string, string | undefined>>, name: string): string {
  const value = env[name]
  if (value === undefined || value === '') {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `incomingAuth.oidc.clientSecretEnv: the variable ${name} is not set`,
    })
  }
  return value
}
