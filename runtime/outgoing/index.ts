/** Public API of the outgoing module: how we authenticate to a backend. */
export type { StrategyConfig } from './config.ts'
export { makeOutgoing, type Outgoing } from './registry.ts'
export { accountAdvice } from './subject.ts'
export type { OutgoingRequest, OutgoingStrategy, UpstreamToken, UpstreamTokens } from './strategy.ts'
