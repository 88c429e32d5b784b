/**
 * The environment variables of the proxy command, in one table, and functions that read them.
 *
 * Names are stable. The values never appear in a log. This module has separate tables for the variables of other
 * features.
 * Source: docs/reference/specification/proxy-command.md#rules, rule 3 (c) and "Environment" of its reference behavior.
 */
import { GatehouseError, timerMs } from '../../../schemas/index.ts'

export interface DocumentedVariable {
  readonly name: string
  readonly meaning: string
}

export const variables = {
  debug: { name: 'GATEHOUSE_DEBUG', meaning: 'true enables debug logging, like --debug' },
  remoteClientSecret: {
    name: 'GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET',
    meaning: 'client secret for the target, if neither flag nor file is set',
  },
  remoteGrant: {
    name: 'GATEHOUSE_REMOTE_AUTH_GRANT',
    meaning:
      'OAuth grant for the login to the target, if the flag is not set: authorization_code, client_credentials, jwt-bearer or id-jag',
  },
  remoteBearerToken: {
    name: 'GATEHOUSE_REMOTE_AUTH_BEARER_TOKEN',
    meaning: 'bearer token for the target, if neither flag nor file is set',
  },
  oidcClientSecret: {
    name: 'GATEHOUSE_OIDC_CLIENT_SECRET',
    meaning: 'client secret for introspection, if the flag is not set',
  },
  tokenExchangeClientSecret: {
    name: 'GATEHOUSE_TOKEN_EXCHANGE_CLIENT_SECRET',
    meaning: 'client secret for token exchange, if neither flag nor file is set',
  },
  secretsProvider: {
    name: 'GATEHOUSE_SECRETS_PROVIDER',
    meaning: 'source of --remote-forward-headers-secret: environment (default) or file',
  },
  secretsDir: {
    name: 'GATEHOUSE_SECRETS_DIR',
    meaning: 'directory for the file provider, with one file per secret',
  },
  secretPrefix: {
    name: 'GATEHOUSE_SECRET_',
    meaning: 'prefix of the variables that contain secrets, for the environment provider',
  },
  disableEnvFallback: {
    name: 'GATEHOUSE_DISABLE_ENV_FALLBACK',
    meaning: 'true disables the fallback from the file provider to the environment',
  },
  stateDir: {
    name: 'GATEHOUSE_STATE_DIR',
    meaning: 'directory for stored logins (default: the user’s state directory)',
  },
  statePassword: {
    name: 'GATEHOUSE_SECRETS_PASSWORD',
    meaning: 'password that encrypts stored logins, instead of a key file',
  },
  clientMetadataUrl: {
    name: 'GATEHOUSE_CLIENT_METADATA_URL',
    meaning: 'URL of a client metadata document, used as client id if the authorization server supports it',
  },
  refreshInitialInterval: {
    name: 'GATEHOUSE_TOKEN_REFRESH_INITIAL_RETRY_INTERVAL',
    meaning: 'first delay before retrying a failed token refresh; doubles each time (default: 10s)',
  },
  refreshMaxInterval: {
    name: 'GATEHOUSE_TOKEN_REFRESH_MAX_RETRY_INTERVAL',
    meaning: 'maximum delay between retries of a token refresh (default: 2m)',
  },
  refreshMaxTries: {
    name: 'GATEHOUSE_TOKEN_REFRESH_MAX_TRIES',
    meaning: 'maximum number of retries of a token refresh (default: 5)',
  },
  refreshMaxElapsed: {
    name: 'GATEHOUSE_TOKEN_REFRESH_MAX_ELAPSED_TIME',
    meaning: 'maximum time for retries of a token refresh (default: 5m)',
  },
  retryTick: {
    name: 'GATEHOUSE_TOKEN_AUTH_RETRYING_TICK_INTERVAL',
    meaning: 'interval between later retries of a token refresh (default: 10m)',
  },
  retryMaxElapsed: {
    name: 'GATEHOUSE_TOKEN_AUTH_RETRYING_MAX_ELAPSED',
    meaning: 'time after which only a request triggers a retry (default: 24h)',
  },
  shutdownGrace: {
    name: 'GATEHOUSE_SHUTDOWN_GRACE',
    meaning: 'time limit for requests in flight after a signal (default: 5s, for a virtual server 10s)',
  },
  loginClientSecret: {
    name: 'GATEHOUSE_LOGIN_CLIENT_SECRET',
    meaning: 'OAuth client secret for `gatehouse up --login` only; has no effect on the proxy',
  },
  tunnelAuthToken: { name: 'GATEHOUSE_TUNNEL_AUTH_TOKEN', meaning: 'token for the tunnel provider' },
  browser: { name: 'BROWSER', meaning: 'program that opens the login page, instead of the system’s default' },
  httpProxy: { name: 'HTTP_PROXY', meaning: 'HTTP proxy for http URLs; the lowercase name also works' },
  httpsProxy: { name: 'HTTPS_PROXY', meaning: 'HTTP proxy for https URLs; the lowercase name also works' },
  noProxy: { name: 'NO_PROXY', meaning: 'hosts that bypass the HTTP proxy; the lowercase name also works' },
  proxyResolvesNames: {
    name: 'GATEHOUSE_PROXY_RESOLVES_NAMES',
    meaning:
      'true allows hosts from remote metadata through the HTTP proxy even if their names do not resolve locally',
  },
  stateHome: { name: 'XDG_STATE_HOME', meaning: 'base of the user’s state directory' },
} as const satisfies Record<string, DocumentedVariable>

export type Environment = Readonly<Record<string, string | undefined>>

/** Returns the value of a variable. An empty variable is treated as unset. */
export function readVariable(env: Environment, variable: DocumentedVariable): string | undefined {
  const value = env[variable.name]
  return value === undefined || value === '' ? undefined : value
}

/**
 * Returns the time limit for requests in flight after a signal; undefined selects the command's default. Throws
 * INVALID_CONFIG.
 */
export function shutdownGraceMs(env: Environment): number | undefined {
  const { name } = variables.shutdownGrace
  const given = readVariable(env, variables.shutdownGrace)
  if (given === undefined) return undefined
  try {
    return timerMs(given)
  } catch {
    throw new GatehouseError('INVALID_CONFIG', { detail: `${name}: must be a duration such as 30s` })
  }
}
