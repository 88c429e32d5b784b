/** Public API of the outgoing module: authentication to backends. */
export { clientViolations, GatewayClient } from './client.ts'
export { roleClaimsOf } from './aws/role-mapping.ts'
export type { StrategyConfig } from './config.ts'
export { makeOutgoing, type StrategyRegistry } from './registry.ts'
export type { OutgoingRequest, CredentialStrategy, UpstreamToken, UpstreamTokens } from './strategy.ts'
export { accountAdvice } from './subject.ts'
