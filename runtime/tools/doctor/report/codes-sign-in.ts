/** Codes of a login that is walked for real (--login): client, browser, code, scopes, renewal. */
export const signInCodes = {
  'login.no-client': {
    expected: 'a client that this program can be',
    fix: 'Give --client-id: a client that was registered by hand, or the URL of a client metadata document that lists the redirect URI.',
  },
  'login.port': {
    expected: 'the port of the redirect URI is free on this machine',
    fix: 'End the program that listens there (another login, gatehouse proxy), or give --redirect-uri with another port that is registered for the client.',
  },
  'login.timeout': {
    expected: 'the browser comes back to the redirect URI',
    fix: 'Read the page in the browser: an authorization server that refuses a client or a redirect URI says so only there. If nobody had the time to sign in, raise --login-timeout.',
  },
  'login.denied': {
    expected: 'the user consents',
    fix: 'Somebody declined, or a rule of the authorization server did: assign the user to the application, or have an administrator consent.',
  },
  'login.pkce': {
    expected: 'an authorization request with PKCE (S256)',
    fix: 'Enable PKCE with S256 for the client: MCP clients do not go on without it. Where that cannot be, put an authorization server in front (authServerConfig of Gatehouse).',
  },
  'login.issuer': {
    expected: 'iss of the redirect equals the issuer (RFC 9207)',
    fix: 'The authorization server names itself differently in the redirect: correct its public URL. Clients refuse such a redirect.',
  },
  'login.response': {
    expected: 'a redirect with one code, or one error',
    fix: 'Correct the redirect of the authorization server, or the proxy in front of it that changes query strings.',
  },
  'login.server': {
    expected: 'a redirect without an error of the server',
    fix: 'The authorization server has an error of its own: look at its log.',
  },
  'code.client': {
    expected: 'the token endpoint accepts the client',
    fix: 'Register the client as public (method none, with PKCE), or give its secret (--client-secret-file); the method at the token endpoint must be the one of the registration.',
  },
  'code.pkce': {
    expected: 'the token endpoint accepts the code_verifier',
    fix: 'Several instances of the authorization server must share their codes, and nothing between may change the request: the verifier was the right one.',
  },
  'code.refused': {
    expected: 'the code is exchanged for a token',
    fix: 'Codes are used once and end soon: look for a second use, a clock that is wrong, several instances without shared storage, or a client that lacks the authorization code grant.',
  },
  'code.unreachable': {
    expected: 'the token endpoint responds',
    fix: 'Open token_endpoint to the network where clients are, and look at the log of the authorization server.',
  },
  'code.response': {
    expected: 'JSON with access_token and token_type (RFC 6749, section 5.1)',
    fix: 'Correct the response of the token endpoint. For a provider with a form of its own put authServerConfig of Gatehouse in front (tokenResponseMapping).',
  },
  'scopes.not-granted': {
    expected: 'the scopes that were asked for',
    fix: 'Allow the missing scopes for the client and for this user, or list fewer in scopes_supported of the protected-resource document.',
  },
  'refresh.not-issued': {
    expected: 'a refresh token',
    fix: 'Users sign in again whenever the access token ends: allow the refresh_token grant for the client, and the scope offline_access where the provider has it (some want prompt=consent with it).',
  },
  'refresh.refused': {
    expected: 'the refresh token gives a new access token',
    fix: 'Allow the refresh_token grant for the client, with the same client authentication and resource as in the login; several instances must share their tokens.',
  },
  'refresh.audience': {
    expected: 'the renewed token has the audience of the first one',
    fix: 'Let the authorization server keep the audience at renewal: clients send the same resource again.',
  },
  'login.left': {
    expected: 'what the login made is given back',
    fix: 'Delete the client in the authorization server: it offers no deletion (RFC 7592), or refused it.',
  },
} as const
