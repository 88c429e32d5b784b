/** Codes for the login: the authorization server's metadata, the client and the token. */
export const loginCodes = {
  'flow.no-code': {
    expected: 'response_type code',
    fix: 'Enable the authorization code flow.',
  },
  'pkce.absent': {
    expected: 'S256 in code_challenge_methods_supported',
    fix: 'Current clients stop here. Announce S256 in the metadata, or use an authorization server in front of it that does (authServerConfig of Gatehouse).',
  },
  'pkce.plain': {
    expected: 'S256 in code_challenge_methods_supported',
    fix: 'Enable S256: the method plain offers no protection, and clients reject it.',
  },
  'registration.none': {
    expected: 'registration_endpoint, or client_id_metadata_document_supported',
    fix: 'Clients cannot register themselves: register one by hand and give its id to the client, or use an authorization server in front of it that registers clients (authServerConfig of Gatehouse).',
  },
  'registration.unreachable': {
    expected: 'the registration endpoint responds',
    fix: 'Open registration_endpoint to the network where clients are.',
  },
  'registration.token': {
    expected: 'registration without a token',
    fix: 'The endpoint requires an initial access token, which MCP clients do not have: allow anonymous registration, or register a client by hand.',
  },
  'registration.redirect': {
    expected: 'loopback redirect URIs are accepted',
    fix: 'Allow http://127.0.0.1 and http://localhost with any port (RFC 8252) in the registration policy.',
  },
  'registration.refused': {
    expected: 'status 201 with a client_id',
    fix: 'Check the registration policy of the authorization server: trusted hosts, allowed scopes, unknown members.',
  },
  'token-auth.unsupported': {
    expected: 'none, client_secret_basic, client_secret_post or private_key_jwt',
    fix: 'Allow one of these methods at the token endpoint.',
  },
  'token-auth.no-public': {
    expected: 'none in token_endpoint_auth_methods_supported',
    fix: 'Public clients (desktop and command-line) have no secret: allow the method none together with PKCE.',
  },
  'scopes.unknown': {
    expected: 'the authorization server supports the scopes of the server',
    fix: 'Clients request all scopes in scopes_supported: define the missing ones, or list fewer in the protected-resource document.',
  },
  'scopes.many': {
    expected: 'few scopes',
    fix: 'Clients request all listed scopes: list only those that a session needs in the protected-resource document.',
  },
  'refresh.none': {
    expected: 'refresh tokens',
    fix: 'Users sign in again whenever the access token expires: enable the refresh_token grant for the client.',
  },
  'keys.missing': {
    expected: 'jwks_uri',
    fix: 'Servers that check tokens by signature need jwks_uri; without it, use introspection.',
  },
  'keys.unreachable': {
    expected: 'the key set of the authorization server',
    fix: 'Make jwks_uri reachable from the MCP server’s network: the server cannot verify tokens without it.',
  },
  'keys.empty': {
    expected: 'at least one public signing key',
    fix: 'Create a signing key in the authorization server.',
  },
  'keys.private': {
    expected: 'public keys only',
    fix: 'The key set publishes a private key: remove it immediately and replace the key. Anyone can forge tokens with it.',
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
    fix: 'Allow the scopes for this client, or list fewer in scopes_supported of the protected-resource document.',
  },
  'client.target': {
    expected: 'the resource parameter is accepted',
    fix: 'The resource is unknown to the authorization server: define it there under the URL of the MCP server.',
  },
  'client.unreachable': {
    expected: 'the authorization endpoint responds',
    fix: 'Open authorization_endpoint to browsers and check its log.',
  },
  'client.refused': {
    expected: 'a login page, or a redirect to one',
    fix: 'The authorization endpoint rejects the request of this client: check redirect URI, scopes and grant types of its registration.',
  },
  'token.expired': {
    expected: 'a token that is valid now',
    fix: 'Log in again, or use the refresh token.',
  },
  'token.not-yet-valid': {
    expected: 'a token that is valid now',
    fix: 'The clock of the authorization server is ahead: synchronise the clocks (NTP).',
  },
  'token.issuer': {
    expected: 'iss of the token equals the issuer',
    fix: 'The token comes from another authorization server or another version of its endpoints: get one from the issuer above.',
  },
  'token.audience': {
    expected: 'aud of the token contains the resource',
    fix: 'Request the token with resource (or audience) set to the URL of the MCP server, or add it with a mapper in the provider.',
  },
  'token.encrypted': {
    expected: 'a signed or opaque token',
    fix: 'The token is encrypted (JWE), so only the issuer can read it: request it with the audience of the API.',
  },
  'token.kind': {
    expected: 'an access token',
    fix: 'This is an ID token: send the access token.',
  },
} as const
