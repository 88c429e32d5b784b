/**
 * Public API of the incoming module: caller authentication, and the metadata that lets clients find the authorization
 * server.
 */
export { type Authenticator, makeAuthenticator } from './authenticate.ts'
export type { DpopParts } from './dpop.ts'
export type { AuthenticationEvent } from './refusals.ts'
export { groupClaimsOf, type IncomingConfig, incomingFromFile, incomingViolations } from './config.ts'
export { fetchWithToken } from './fetches.ts'
export { foreignGroupRemover } from './prefixes.ts'
export {
  addsCredentialAgain,
  type AuthServerFacts,
  certificateViolations,
  dpopViolations,
  type EmbeddedAuthServer,
  pairingViolations,
  providersOnly,
  secretNotes,
  type SecretUse,
} from './embedded.ts'
export { anonymousCaller } from './identity.ts'
