/** Public API of the config module. */
export { canStart } from './executable.ts'
export {
  type AuthServerConfig,
  type AuthServerSecrets,
  type AuthServerStorage,
  type CimdConfig,
  type OAuth2UpstreamConfig,
  type OidcUpstreamConfig,
  type UpstreamRegistrationConfig,
  type UserInfoConfig,
} from './authserver/settings.ts'
export { authServerViolations, parseNetwork } from './authserver/validate.ts'
export { type Environment, loadAuthServerConfig } from './authserver/file.ts'
export { followTokenPath, identifierOf, parseKeepingDigits, parseTokenPath } from './authserver/token-path.ts'
export {
  environment,
  loadVmcpConfig,
  parseVmcpConfig,
  type VmcpConfig,
  vmcpEnvironment,
  vmcpSwitchViolations,
  watchFile,
} from './vmcp/file.ts'
export type { ExcludedBackend } from '../../schemas/index.ts'
export { type ServeFlags, serveSettings } from './vmcp/serve.ts'
export { proxyEnvironment, readVariable, variables } from './proxy/env.ts'
export { type ProxyConfig, resolveProxyConfig } from './proxy/settings.ts'
export type { ExchangeSettings } from './proxy/exchange.ts'
export { type FlagRow, proxyFlags, type ProxyInput } from './proxy/flags.ts'
export type { ProxyOidc } from './proxy/oidc.ts'
export { type OAuthSettings, offeredLogin } from './proxy/remote.ts'
export type { RenewalPace } from './proxy/renewal-pace.ts'
export { parseTarget, shownUri, type Target } from './proxy/target.ts'
export { rotatingSecret } from './common/secrets.ts'
export { loadProxyFile, needsVirtualServer, resolveProxyFile } from './proxy/file.ts'
export { virtualServerOf } from './vmcp/from-proxy.ts'
export { readYaml, readYamlTree } from './common/yaml.ts'
