/**
 * Public API of the outgoing module: authentication to backends and targets, and the user's own login at one of them.
 */
export { clientViolations, GatewayClient } from './client.ts'
export { roleClaimsOf } from './aws/role-mapping.ts'
export type { StrategyConfig } from './config.ts'
export { makeOutgoing, type StrategyRegistry } from './registry.ts'
export type {
  AccessToken,
  OutgoingRequest,
  CredentialStrategy,
  UpstreamToken,
  UpstreamTokens,
} from './strategy.ts'
export { accountAdvice } from './subject.ts'
export { detect } from './login/detect.ts'
export { type LoginFetch, makeLoginFetch } from './login/fetches.ts'
export { ExclusiveWork } from './login/file-lock.ts'
export { unavailable, uriOf } from './login/kept-login.ts'
export { type Located, type LocateSettings, locate, scopesOf } from './login/locate.ts'
export { TargetLogin } from './login/login.ts'
export { OnDemandLogin, type SignInStep } from './login/on-demand-login.ts'
export { persistInDirectory, persistNothing } from './login/persisted.ts'
export { StepUps } from './login/step-ups.ts'
export {
  LoginTokens,
  type OwnLogin,
  proofRefusal,
  type Rejection,
  type TokenSource,
} from './login/token-source.ts'
