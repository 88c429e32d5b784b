/** Codes for the login: the authorization server's metadata, the client and the token. */
export const loginCodes = {
  'flow.no-code': {
    expected: 'response_type code',
    fix: 'Enable the authorization code flow.',
  },
  'pkce.absent': {
    expected: 'S256 in code_challenge_methods_supported',
    fix: 'Current clients stop here. Advertise S256 in the metadata, or let clients log in through Gatehouse’s authServerConfig, which advertises it.',
  },
  'pkce.plain': {
    expected: 'S256 in code_challenge_methods_supported',
    fix: 'Enable S256: the plain method offers no protection, and clients reject it.',
  },
  'registration.none': {
    expected: 'registration_endpoint, or client_id_metadata_document_supported',
    fix: 'Clients cannot register themselves: register a client manually and give its id to the MCP client, or let clients log in through Gatehouse’s authServerConfig, which registers clients.',
  },
  'registration.unreachable': {
    expected: 'the registration endpoint responds',
    fix: 'Make registration_endpoint reachable from the clients’ network.',
  },
  'registration.token': {
    expected: 'registration without a token',
    fix: 'The endpoint requires an initial access token, which MCP clients do not have: allow anonymous registration, or register a client manually.',
  },
  'registration.redirect': {
    expected: 'loopback redirect URIs are accepted',
    fix: 'Allow http://127.0.0.1 and http://localhost with any port (RFC 8252) in the registration policy.',
  },
  'registration.refused': {
    expected: 'status 201 with a client_id',
    fix: 'Check the authorization server’s registration policy: trusted hosts, allowed scopes, unknown members.',
  },
  'token-auth.unsupported': {
    expected: 'none, client_secret_basic, client_secret_post or private_key_jwt',
    fix: 'Allow one of these methods at the token endpoint.',
  },
  'token-auth.no-public': {
    expected: 'none in token_endpoint_auth_methods_supported',
    fix: 'Public clients (desktop and command-line) have no secret: allow the method “none” together with PKCE.',
  },
  'scopes.unknown': {
    expected: 'the authorization server supports the MCP server’s scopes',
    fix: 'Clients request all scopes in scopes_supported: define the missing scopes, or list fewer in the protected-resource document.',
  },
  'scopes.many': {
    expected: 'few scopes',
    fix: 'Clients request all listed scopes: in the protected-resource document, list only those that a session needs.',
  },
  'refresh.none': {
    expected: 'refresh tokens',
    fix: 'Users must log in again whenever the access token expires: enable the refresh_token grant for the client.',
  },
  'keys.missing': {
    expected: 'jwks_uri',
    fix: 'Servers that verify token signatures require jwks_uri; without it, use introspection.',
  },
  'keys.unreachable': {
    expected: 'the authorization server’s key set',
    fix: 'Make jwks_uri reachable from the MCP server’s network: the server cannot verify tokens without it.',
  },
  'keys.empty': {
    expected: 'at least one public signing key',
    fix: 'Create a signing key in the authorization server.',
  },
  'keys.private': {
    expected: 'public keys only',
    fix: 'The key set contains a private key: remove it immediately and replace the key pair. Anyone can forge tokens with it.',
  },
  'client.unknown': {
    expected: 'the client id is registered',
    fix: 'The client is unknown to the authorization server: delete the registration that the MCP client has stored, or correct the id.',
  },
  'client.redirect': {
    expected: 'the redirect URI is registered for the client',
    fix: 'Register exactly the redirect URI that was sent (--redirect-uri).',
  },
  'client.scope': {
    expected: 'the scopes are allowed for the client',
    fix: 'Allow the scopes for this client, or list fewer in scopes_supported in the protected-resource document.',
  },
  'client.target': {
    expected: 'the resource parameter is accepted',
    fix: 'The resource is unknown to the authorization server: define it there under the MCP server’s URL.',
  },
  'client.unreachable': {
    expected: 'the authorization endpoint responds',
    fix: 'Make authorization_endpoint reachable from browsers, and check the authorization server’s log.',
  },
  'client.refused': {
    expected: 'a login page, or a redirect to one',
    fix: 'The authorization endpoint rejected this client’s request: check the redirect URI, scopes and grant types in its registration.',
  },
  'token.expired': {
    expected: 'a currently valid token',
    fix: 'Log in again, or use the refresh token.',
  },
  'token.not-yet-valid': {
    expected: 'a currently valid token',
    fix: 'The authorization server’s clock is ahead: synchronize the clocks (NTP).',
  },
  'token.issuer': {
    expected: 'the token’s iss equals the issuer',
    fix: 'The token comes from another authorization server or another version of its endpoints: get a token from the issuer above.',
  },
  'token.audience': {
    expected: 'the token’s aud contains the resource',
    fix: 'Request the token with resource (or audience) set to the MCP server’s URL, or add the audience with a mapper in the provider.',
  },
  'token.encrypted': {
    expected: 'a signed or opaque token',
    fix: 'The token is encrypted (JWE), so only the issuer can read it: request it with the API’s audience.',
  },
  'token.kind': {
    expected: 'an access token',
    fix: 'This is an ID token: send the access token.',
  },
} as const
