/** Public API of the incoming module: who is calling, and how an untrusted client learns where to sign in. */
export { type AuthenticationEvent, type Authenticator, makeAuthenticator } from './authenticate.ts'
export { type IncomingConfig, oidcViolations } from './config.ts'
export {
  addsCredentialAgain,
  type AuthServerFacts,
  type EmbeddedAuthServer,
  pairingViolations,
  providersOnly,
  secretNotes,
  type SecretUse,
} from './embedded.ts'
export { anonymousCaller } from './identity.ts'
