/** Public API of the incoming module: who is calling, and how an untrusted client learns where to sign in. */
export { type Authenticator, type AuthenticatorParts, makeAuthenticator } from './authenticate.ts'
export { type ChallengeError, challengeFor } from './challenge.ts'
export { type IncomingConfig, type OidcConfig, oidcViolations, resourceUrl } from './config.ts'
export {
  type AuthServerFacts,
  type EmbeddedAuthServer,
  pairingViolations,
  providersOnly,
  secretNotes,
  type SecretUse,
} from './embedded.ts'
export { protectedResourceDocument, protectedResourceRoute } from './document.ts'
export { anonymousCaller, localCaller } from './identity.ts'
