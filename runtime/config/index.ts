/** The door of the config room. */
export {
  type AuthServerConfig,
  authServerDefaults,
  type AuthServerSecrets,
  type AuthServerStorage,
  type CimdConfig,
  type ClientRegistrationConfig,
  defaultScopesSupported,
  type IdentityFromToken,
  type OAuth2UpstreamConfig,
  type OidcUpstreamConfig,
  type SecretSource,
  type TokenResponseMapping,
  type UpstreamConfig,
  type UpstreamRegistrationConfig,
  type UserInfoConfig,
} from './authserver.ts'
export { authServerFaults } from './authserver-faults.ts'
export {
  authServerEnvironment,
  type Environment,
  loadAuthServerConfig,
  parseAuthServerConfig,
} from './authserver-file.ts'
export {
  followTokenPath,
  identifierOf,
  parseKeepingDigits,
  parseTokenPath,
  type TokenPath,
} from './token-path.ts'
export {
  environment,
  loadVmcpConfig,
  parseVmcpConfig,
  type VmcpConfig,
  vmcpEnvironment,
  watchFile,
} from './vmcp.ts'
