/**
 * The discovery documents and the key set.
 * Source: RFC 8414 section 2, OpenID Connect Discovery section 3, RFC 9207 section 3, RFC 7517;
 * docs/reference/specification/external-auth.md.
 */
import type { Exchange } from '../../net/index.ts'
import type { AuthServerContext } from '../login/context.ts'
import { sendDocument } from './responses.ts'
import { grantTypesSupported } from './token.ts'

/** RFC 8414. */
function serverMetadata(context: AuthServerContext): Record<string, unknown> {
  const { config, urls } = context
  const methods = clientAuthMethods(context)
  return {
    issuer: config.issuer,
    authorization_endpoint: urls.authorize,
    token_endpoint: urls.token,
    jwks_uri: urls.jwks,
    ...(config.registration.enabled ? { registration_endpoint: urls.register } : {}),
    revocation_endpoint: urls.revoke,
    introspection_endpoint: urls.introspect,
    scopes_supported: config.scopesSupported,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: grantTypesSupported,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_methods_supported: methods,
    // RFC 8414 section 2 allows access token types here: a client inspects its own tokens with its own token.
    introspection_endpoint_auth_methods_supported: ['Bearer', ...methods.filter((name) => name !== 'none')],
    authorization_response_iss_parameter_supported: true,
    ...(config.cimd ? { client_id_metadata_document_supported: true } : {}),
  }
}

/** The members of RFC 8414 and of OpenID Connect Discovery. */
function openidMetadata(context: AuthServerContext): Record<string, unknown> {
  return {
    ...serverMetadata(context),
    userinfo_endpoint: context.urls.userinfo,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(context.keys().all.map((key) => key.alg))],
    claims_supported: ['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'at_hash', 'name', 'email'],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
  }
}

function clientAuthMethods({ config }: AuthServerContext): readonly string[] {
  return config.registration.enabled && config.registration.confidentialClients
    ? ['none', 'client_secret_basic', 'client_secret_post']
    : ['none']
}

export async function showServerMetadata(exchange: Exchange, context: AuthServerContext): Promise<void> {
  sendDocument(exchange, serverMetadata(context))
}

export async function showOpenidMetadata(exchange: Exchange, context: AuthServerContext): Promise<void> {
  sendDocument(exchange, openidMetadata(context))
}

export async function showKeys(exchange: Exchange, context: AuthServerContext): Promise<void> {
  sendDocument(exchange, context.keys().jwks)
}
