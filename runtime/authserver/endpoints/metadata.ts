/**
 * The discovery documents and the key set.
 * Source: RFC 8414 section 2, OpenID Connect Discovery section 3, RFC 9207 section 3, RFC 7517;
 * docs/reference/specification/external-auth.md.
 */
import type { Exchange } from '../../net/index.ts'
import { assertionAlgs, proofAlgorithms } from '../../oauth/index.ts'
import { identityAssertionProfile } from '../clients/identity-assertion.ts'
import { type AuthServerContext, canSignIn } from '../login/context.ts'
import { sendDocument } from './responses.ts'
import { grantTypesSupported } from './token.ts'

/**
 * RFC 8414. Contains only what a client can use, plus the authorization endpoint. MCP SDKs reject metadata without this
 * endpoint, even when they request no login.
 */
function serverMetadata(context: AuthServerContext): Record<string, unknown> {
  const { config, urls } = context
  return {
    issuer: config.issuer,
    authorization_endpoint: urls.authorize,
    token_endpoint: urls.token,
    jwks_uri: urls.jwks,
    revocation_endpoint: urls.revoke,
    introspection_endpoint: urls.introspect,
    grant_types_supported: grantTypesSupported(context),
    ...(acceptsUsers(context) ? { authorization_grant_profiles_supported: [identityAssertionProfile] } : {}),
    ...clientAuthMetadata(context),
    ...(context.tokenProofs ? { dpop_signing_alg_values_supported: proofAlgorithms } : {}),
    ...(config.bindsCertificates ? { tls_client_certificate_bound_access_tokens: true } : {}),
    ...(canSignIn(context) ? loginMetadata(context) : { response_types_supported: [] }),
    ...(acceptsDocuments(context) ? { client_id_metadata_document_supported: true } : {}),
  }
}

/** True when a client can present an identity assertion. */
function acceptsUsers({ assertionPolicies, config, declared }: AuthServerContext): boolean {
  return assertionPolicies.accept('id_jag') && (config.cimd !== undefined || declared.all().length > 0)
}

/** True when a client with a metadata document can use the server. */
function acceptsDocuments(context: AuthServerContext): boolean {
  return context.config.cimd !== undefined && (canSignIn(context) || acceptsUsers(context))
}

function loginMetadata({ config, urls }: AuthServerContext): Record<string, unknown> {
  return {
    ...(config.registration.enabled ? { registration_endpoint: urls.register } : {}),
    scopes_supported: config.scopesSupported,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

/** Returns the authentication methods and assertion algorithms for the three endpoints that authenticate clients. */
function clientAuthMetadata(context: AuthServerContext): Record<string, unknown> {
  const methods = clientAuthMethods(context)
  const algs = assertionAlgsInUse(context)
  const metadata = {
    // A platform presents its token without a client (grant jwt-bearer).
    token_endpoint_auth_methods_supported:
      context.assertionPolicies.accept('jwt_bearer') && !methods.includes('none')
        ? ['none', ...methods]
        : methods,
    revocation_endpoint_auth_methods_supported: methods,
    // RFC 8414 section 2 allows access token types here: a client inspects its own tokens with its own token.
    introspection_endpoint_auth_methods_supported: ['Bearer', ...methods.filter((name) => name !== 'none')],
  }
  if (algs.length === 0) return metadata
  return {
    ...metadata,
    token_endpoint_auth_signing_alg_values_supported: algs,
    revocation_endpoint_auth_signing_alg_values_supported: algs,
    introspection_endpoint_auth_signing_alg_values_supported: algs,
  }
}

/** The members that RFC 8414 and OpenID Connect Discovery define. */
function openidMetadata(context: AuthServerContext): Record<string, unknown> {
  if (!canSignIn(context)) return serverMetadata(context)
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

function clientAuthMethods(context: AuthServerContext): readonly string[] {
  const { registration } = context.config
  const registersSecrets = canSignIn(context) && registration.enabled && registration.confidentialClients
  const clients = context.declared.all()
  const hasSecrets = registersSecrets || clients.some(({ secretHashes }) => secretHashes.length > 0)
  const hasAssertions = acceptsDocuments(context) || clients.some(({ keys, federated }) => keys ?? federated)
  return [
    ...(canSignIn(context) ? ['none'] : []),
    ...(hasSecrets ? ['client_secret_basic', 'client_secret_post'] : []),
    ...(hasAssertions ? ['private_key_jwt'] : []),
    ...(clients.some(({ spiffe }) => spiffe) ? ['spiffe_jwt'] : []),
  ]
}

/**
 * Returns the algorithms that declared clients use, or all algorithms if clients have metadata documents or tokens of
 * trusted issuers.
 */
function assertionAlgsInUse(context: AuthServerContext): readonly string[] {
  if (acceptsDocuments(context)) return assertionAlgs
  const clients = context.declared.all()
  // The issuer of a federated client or a workload chooses the algorithm.
  if (clients.some(({ federated, spiffe }) => federated ?? spiffe)) return assertionAlgs
  const used = new Set(clients.flatMap(({ keys }) => keys?.algs ?? []))
  return assertionAlgs.filter((alg) => used.has(alg))
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
