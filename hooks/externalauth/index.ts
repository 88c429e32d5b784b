/** The types of MCPExternalAuthConfig. To add a type, add a module in this folder and a row in `modules`. */
import type {
  MCPExternalAuthConfig,
  MCPExternalAuthConfigSpec,
  Violation,
  SecretRef,
} from '../../schemas/index.ts'
import { variablePart } from '../runtime-config/header-forward.ts'
import type { ConfigPart } from '../sync/conditions.ts'
import type { HookSettings } from '../base/settings.ts'
import { clientCredentials } from './client-credentials.ts'
import { cloudSts } from './cloud-sts.ts'
import { embeddedAuthServer } from './embedded-auth-server.ts'
import type { ExternalAuthModule, Strategy, StrategyTarget } from './module.ts'
import { obo } from './obo.ts'
import { basicAuth, bearerToken, headerInjection, upstreamInject } from './stored-credentials.ts'
import { tokenExchange } from './token-exchange.ts'
import { xaa } from './xaa.ts'

export {
  authServerViolations,
  authServerWarnings,
  checkUserIdentities,
  hasIdentity,
  issuerFailure,
} from './embedded-auth-server.ts'
export type { Strategy } from './module.ts'
export { enterpriseRequired, oboViolations } from './obo.ts'

const modules: Readonly<Record<MCPExternalAuthConfigSpec['type'], ExternalAuthModule>> = {
  basicAuth,
  bearerToken,
  clientCredentials,
  cloudSts,
  embeddedAuthServer,
  headerInjection,
  obo,
  tokenExchange,
  /** Sends no credentials to the backend. Admission warns about this type. */
  unauthenticated: {
    validate: () => [],
    secrets: () => [],
    toRuntime: () => ({ value: { type: 'unauthenticated' } }),
  },
  upstreamInject,
  xaa,
}

/** Validates the settings of one object against the rules that the schema cannot express. */
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

/** Lists the Secrets that pods reread. */
export function rereadAuthSecrets({ spec }: MCPExternalAuthConfig): readonly SecretRef[] {
  return modules[spec.type].rereadSecrets?.(spec) ?? []
}

/** Builds the outgoing strategy; the value is undefined when the type does not authenticate to backends. */
export function toStrategy(
  config: MCPExternalAuthConfig,
  target: Omit<StrategyTarget, 'name' | 'variable'>,
): ConfigPart<Strategy | undefined> {
  const { name } = config.metadata
  const named = { ...target, name, variable: variablePart(name) }
  return modules[config.spec.type].toRuntime(config.spec, named)
}
