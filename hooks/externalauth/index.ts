/** The types of MCPExternalAuthConfig, one module each. To add a type, add a file here and a row in `modules`. */
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

/** Validates settings on their own, beyond the schema. */
export function externalAuthViolations(
  { spec }: MCPExternalAuthConfig,
  settings: Pick<HookSettings, 'enableObo'>,
): readonly Violation[] {
  return modules[spec.type].validate(spec, settings)
}

/** Lists the Secrets that the settings refer to. */
export function externalAuthSecrets({ spec }: MCPExternalAuthConfig): readonly SecretRef[] {
  return modules[spec.type].secrets(spec)
}

/** Builds the outgoing strategy; the value is undefined when the type does not authenticate to backends. */
export function toStrategy(
  config: MCPExternalAuthConfig,
  target: Omit<StrategyTarget, 'variable'>,
): ConfigPart<Strategy | undefined> {
  const variable = variablePart(config.metadata.name)
  return modules[config.spec.type].toRuntime(config.spec, { ...target, variable })
}
