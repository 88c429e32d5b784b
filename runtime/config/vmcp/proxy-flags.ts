/**
 * Converts the flags of a proxy with locked tools or webhooks to a proxy file. Such a proxy inspects every message, so
 * it runs as a virtual server with one backend. Unsupported flags are rejected instead of ignored.
 */
import { resolve } from 'node:path'
import { invalidConfig, type ProxyFile } from '../../../schemas/index.ts'
import { parseConfig } from '../common/config-file.ts'
import type { Environment } from '../proxy/env.ts'
import { flagOf, proxyFlags, type ProxyInput } from '../proxy/flags.ts'
import { type ProxySettings, resolveProxyConfig } from '../proxy/settings.ts'

/** Supported flags. Other flags are errors. */
const supported: ReadonlySet<string> = new Set<keyof ProxyInput>([
  'targetUri',
  'host',
  'port',
  'tlsCertFile',
  'tlsKeyFile',
  'tlsClientCaFile',
  'allowedOrigins',
  'resourceUrl',
  'oidcIssuer',
  'oidcAudience',
  'oidcClientId',
  'oidcIntrospectionUrl',
  'oidcJwksUrl',
  'oidcScopes',
  'oidcCaBundle',
  'oidcAllowPrivateIp',
  'oidcInsecureAllowHttp',
  'remoteAuthBearerToken',
  'remoteAuthBearerTokenFile',
  'remoteCaBundle',
  'remoteForwardHeaders',
  'remoteForwardHeadersSecret',
  'toolLock',
  'pinFirst',
  'webhookConfig',
])
/** Flags that also have an effect when the proxy has a file and inspects every message. */
const besideFile: ReadonlySet<string> = new Set<keyof ProxyInput>([
  'config',
  'host',
  'port',
  'tlsCertFile',
  'tlsKeyFile',
  'tlsClientCaFile',
  'allowedOrigins',
  'toolLock',
  'pinFirst',
  'webhookConfig',
])
const tokenVariable = 'GATEHOUSE_PROXY_BEARER_TOKEN'

/** Throws an INVALID_CONFIG error that lists all flags that would have no effect with such a file. */
export function requireNoOtherFlags(input: ProxyInput, sections: readonly string[]): void {
  rejectOthers(
    input,
    besideFile,
    `has no effect with a file that contains ${sections.join(', ')}: set it in the file`,
  )
}

/**
 * Converts the flags. `sections` lists the flags that require the conversion. Throws an INVALID_CONFIG error that lists
 * all errors.
 */
export function deepProxyFile(
  name: string,
  input: ProxyInput,
  env: Environment,
  sections: readonly string[],
): { readonly file: ProxyFile; readonly env: Environment } {
  const sectionNames = sections.join(', ')
  rejectOthers(input, supported, `cannot be combined with ${sectionNames}`)
  const settings = resolveProxyConfig(name, input, env)
  const { remote, oidc } = settings
  if (oidc?.clientSecret)
    throw invalidConfig(`${sectionNames}: set the client secret for introspection in a file (--config)`)
  const token = remote.kind === 'bearer' ? remote.token().reveal() : undefined
  const file = {
    name,
    targetUri: input.targetUri,
    host: settings.host,
    port: settings.port,
    allowedOrigins: settings.allowedOrigins.length > 0 ? settings.allowedOrigins : undefined,
    oidc: oidc && oidcOf(settings, input),
    targetCaBundlePath: absolute(input.remoteCaBundle),
    headerForward: {
      addPlaintextHeaders: pairs(input.remoteForwardHeaders),
      addHeadersFromSecret: pairs(input.remoteForwardHeadersSecret),
    },
    outgoingAuth:
      token === undefined ? undefined : { type: 'bearer_token', bearerToken: { tokenEnv: tokenVariable } },
  }
  return {
    file: parseConfig('proxy', JSON.stringify(file), sectionNames),
    env: token === undefined ? env : { ...env, [tokenVariable]: token },
  }
}

function rejectOthers(input: ProxyInput, known: ReadonlySet<string>, why: string): void {
  const given = (Object.entries(input) as [keyof ProxyInput, unknown][]).filter(
    ([key, value]) => value !== undefined && value !== false && !known.has(key) && isFlag(key),
  )
  if (given.length > 0) throw invalidConfig(given.map(([key]) => `${flagOf(key)}: ${why}`).join('\n'))
}

function isFlag(key: string): key is keyof ProxyInput {
  return Object.hasOwn(proxyFlags, key)
}

function oidcOf({ resourceUrl }: ProxySettings, input: ProxyInput): Record<string, unknown> {
  return {
    issuer: input.oidcIssuer,
    audience: input.oidcAudience,
    resource: resourceUrl,
    clientId: input.oidcClientId,
    introspectionUrl: input.oidcIntrospectionUrl,
    jwksUrl: input.oidcJwksUrl,
    jwksAllowPrivateIp: input.oidcAllowPrivateIp,
    protectedResourceAllowPrivateIp: input.oidcAllowPrivateIp,
    insecureAllowHttp: input.oidcInsecureAllowHttp,
    scopes: input.oidcScopes,
    caBundlePath: absolute(input.oidcCaBundle),
  }
}

function absolute(path: string | undefined): string | undefined {
  return path === undefined ? undefined : resolve(path)
}

/** Parses `Name=value` pairs. */
function pairs(given: readonly string[] = []): Record<string, string> | undefined {
  const found = given.map((pair) => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return found.length > 0 ? Object.fromEntries(found) : undefined
}
