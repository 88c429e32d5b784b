/** Codes for --login: client, browser, code, scopes, renewal. */
export const signInCodes = {
  'login.no-client': {
    expected: 'a client that this program can use',
    fix: 'Set --client-id to a client that was registered manually, or to the URL of a client metadata document that lists the redirect URI.',
  },
  'login.port': {
    expected: 'the port of the redirect URI is free on this machine',
    fix: 'Stop the program that is listening there (another login, gatehouse proxy), or set --redirect-uri to a URI with another port that is registered for the client.',
  },
  'login.timeout': {
    expected: 'the browser returns to the redirect URI',
    fix: 'Read the page in the browser: an authorization server reports a rejected client or redirect URI only there. If there was not enough time to log in, raise --login-timeout.',
  },
  'login.denied': {
    expected: 'the user consents',
    fix: 'The user or an authorization server rule denied the login: assign the user to the application, or have an administrator consent.',
  },
  'login.pkce': {
    expected: 'an authorization request with PKCE (S256)',
    fix: 'Enable PKCE with S256 for the client: MCP clients require it. If that is not possible, let clients log in through Gatehouse’s authServerConfig.',
  },
  'login.issuer': {
    expected: 'iss in the redirect equals the issuer (RFC 9207)',
    fix: 'The authorization server uses a different issuer in the redirect: correct its public URL. Clients reject the redirect.',
  },
  'login.response': {
    expected: 'a redirect with exactly one code or one error',
    fix: 'Correct the authorization server’s redirect, or stop the proxy in front of it from changing query strings.',
  },
  'login.server': {
    expected: 'a redirect without a server error',
    fix: 'The authorization server reported an internal error: check its log.',
  },
  'code.client': {
    expected: 'the token endpoint accepts the client',
    fix: 'Register the client as public (method “none”, with PKCE), or set its secret (--client-secret-file); the client authentication method must match the registration.',
  },
  'code.pkce': {
    expected: 'the token endpoint accepts the code_verifier',
    fix: 'Several instances of the authorization server must share their codes, and no proxy may change the request: the verifier was correct.',
  },
  'code.refused': {
    expected: 'the code is exchanged for a token',
    fix: 'Codes can be used only once and expire quickly: check for a second use, a wrong clock, several instances without shared storage, or a client without the authorization code grant.',
  },
  'code.unreachable': {
    expected: 'the token endpoint responds',
    fix: 'Make token_endpoint reachable from the clients’ network, and check the authorization server’s log.',
  },
  'code.response': {
    expected: 'JSON with access_token and token_type (RFC 6749, section 5.1)',
    fix: 'Correct the token endpoint’s response. For a provider with a nonstandard response, configure Gatehouse’s authServerConfig with tokenResponseMapping.',
  },
  'scopes.not-granted': {
    expected: 'the requested scopes',
    fix: 'Allow the missing scopes for the client and for this user, or list fewer in scopes_supported in the protected-resource document.',
  },
  'refresh.not-issued': {
    expected: 'a refresh token',
    fix: 'Users must log in again whenever the access token expires: allow the refresh_token grant for the client, and the offline_access scope if the provider supports it (some also require prompt=consent).',
  },
  'refresh.refused': {
    expected: 'the refresh token can be exchanged for a new access token',
    fix: 'Allow the refresh_token grant for the client, with the same client authentication and resource as in the login; several instances must share their tokens.',
  },
  'refresh.audience': {
    expected: 'the renewed token has the same audience as the first one',
    fix: 'Configure the authorization server to keep the audience on renewal: clients send the same resource again.',
  },
  'login.left': {
    expected: 'the tokens and the registration are cleaned up',
    fix: 'Delete the client manually on the authorization server, which does not support deletion (RFC 7592) or rejected the request.',
  },
} as const
