/**
 * The types of MCPExternalAuthConfig, one module each. A new type is a row here and a file beside it.
 */
import type {
  MCPExternalAuthConfig,
  MCPExternalAuthConfigSpec,
  Violation,
  SecretRef,
} from '../../schemas/index.ts'
import { variablePart } from '../runtime-config/header-forward.ts'
import type { ConfigPart } from '../sync/conditions.ts'
import type { HookSettings } from '../base/settings.ts'
import { basicAuth } from './basic-auth.ts'
import { bearerToken } from './bearer-token.ts'
import { cloudSts } from './cloud-sts.ts'
import { embeddedAuthServer } from './embedded-auth-server.ts'
import { headerInjection } from './header-injection.ts'
import type { ExternalAuthModule, Strategy, StrategyTarget } from './module.ts'
import { obo } from './obo.ts'
import { tokenExchange } from './token-exchange.ts'
import { unauthenticated } from './unauthenticated.ts'
import { upstreamInject } from './upstream-inject.ts'
import { xaa } from './xaa.ts'

export {
  authServerViolations,
  authServerWarnings,
  checkUserIdentities,
  issuerFailure,
} from './embedded-auth-server.ts'
export type { Strategy } from './module.ts'
export { enterpriseRequired, oboViolations } from './obo.ts'

const modules: Readonly<Record<MCPExternalAuthConfigSpec['type'], ExternalAuthModule>> = {
  basicAuth,
  bearerToken,
  cloudSts,
  embeddedAuthServer,
  headerInjection,
  obo,
  tokenExchange,
  unauthenticated,
  upstreamInject,
  xaa,
}

/** Problems of the settings by themselves, beyond the schema. */
export function externalAuthViolations(
  { spec }: MCPExternalAuthConfig,
  settings: Pick<HookSettings, 'enableObo'>,
): readonly Violation[] {
  return modules[spec.type].validate(spec, settings)
}

/** Secrets that the settings name. */
export function externalAuthSecrets({ spec }: MCPExternalAuthConfig): readonly SecretRef[] {
  return modules[spec.type].secrets(spec)
}

/** The outgoing strategy; its value is undefined when the type is not one. */
export function toStrategy(
  config: MCPExternalAuthConfig,
  target: Omit<StrategyTarget, 'variable'>,
): ConfigPart<Strategy | undefined> {
  const variable = variablePart(config.metadata.name)
  return modules[config.spec.type].toRuntime(config.spec, { ...target, variable })
}
