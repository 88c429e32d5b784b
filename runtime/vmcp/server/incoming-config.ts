import type { VmcpConfig } from '../../config/index.ts'
import { groupClaimsOf, type IncomingConfig, incomingFromFile } from '../../incoming/index.ts'
import type { Log } from '../../net/index.ts'
import { roleClaimsOf } from '../../outgoing/index.ts'

/**
 * Converts `incomingAuth` to the settings of the incoming module. Resolves variables and files. Throws INVALID_CONFIG
 * if a variable or file cannot be read.
 */
export function incomingConfig(
  config: VmcpConfig,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): IncomingConfig {
  return incomingFromFile(config.incomingAuth, { env, log, groupClaims: renamedClaims(config) })
}

/** Returns the claims from which policies and role mappings read groups or roles. */
export function renamedClaims({ incomingAuth, outgoingAuth }: VmcpConfig): readonly string[] {
  const strategies = [outgoingAuth.default, ...Object.values(outgoingAuth.backends ?? {})]
  return [...groupClaimsOf(incomingAuth.authz), ...roleClaimsOf(strategies)]
}
