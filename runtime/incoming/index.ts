/** The door of the incoming room: who is calling, and how a stranger learns where to sign in. */
export { type Authenticator, type AuthenticatorParts, makeAuthenticator } from './authenticate.ts'
export { type ChallengeError, challengeFor } from './challenge.ts'
export { type IncomingConfig, type OidcConfig, oidcProblems, resourceUrl } from './config.ts'
export {
  type AuthServerFacts,
  type EmbeddedAuthServer,
  pairingProblems,
  providersOnly,
} from './embedded.ts'
export { protectedResourceDocument, protectedResourceRoute } from './document.ts'
export { anonymousCaller, localCaller } from './identity.ts'
